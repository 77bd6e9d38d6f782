/* What ch2 is to be compiled for. Included by mpid.h before everything else. */
#ifndef CHCONFIG
#define CHCONFIG

/* LITE_SHORT_MAX above this means this: the data is copied into the packet and out of it. With its
 * header a packet stays below MPID_CONTROL_BYTES_MAX of the channel; what is sent is as long as the
 * message. */
#define MPID_PKT_MAX_DATA_SIZE 16384

/* Rendezvous with oneself is a copy (chbrndv.c, chnrndv.c). */
#define MPID_RNDV_SELF

/* No window of eager bytes, nor of packets (chpackflow.h): the channel's queues push back. */
#define MPID_NO_FLOW_CONTROL

#define MPID_CommInit(oldcomm, newcomm) MPI_SUCCESS
#define MPID_CommFree(comm) MPI_SUCCESS

#endif
