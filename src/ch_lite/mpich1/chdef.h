/* What ch2 wants to know of a transport: its form, start and end. Included by ch2's packets.h
 * before channel.h. */
#ifndef MPID_LITE_CHDEF_INCLUDED
#define MPID_LITE_CHDEF_INCLUDED

#define MPIDTRANSPORT "ch_lite"

/* The blocking form: ch2 takes chbeager.c and chbrndv.c in place of chneager.c and chnrndv.c
 * (chinit.c). */
#ifdef MPID_LITE_BLOCKING
#define PI_NO_NSEND
#define PI_NO_NRECV
#endif

/* chbrndv.c waits by it for a transfer, instead of polling. */
#define HAVE_MPID_WAIT_FOR_MSG
#define MPID_WaitForMsg() lite_host_wait_for_news()

#define PInumtids MPID_MyWorldSize
#define PImytid MPID_MyWorldRank

/* `dev` is chinit.c's own: its cutoffs are set by then, to what is compiled in, and the start sets
 * them anew. */
#define PIiInit(argc, argv) MPID_Lite_Init((argc), (argv), dev)
#define PIiFinish MPID_Lite_End
#define SYexitall(message, code) MPID_Lite_Exit((message), (code))

void MPID_Lite_Init(int* argc, char*** argv, void* device);
void MPID_Lite_End(void);
void MPID_Lite_Exit(const char* message, int code);

#endif
