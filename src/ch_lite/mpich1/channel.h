/* MPICH-1's channel operations (ch2) as calls of channel_host.h. Takes the place of ch2's own
 * channel.h, which is written for message-passing libraries. Included by ch2's packets.h, of which
 * the device directory therefore has a link: a quoted include is looked for beside the file that
 * includes (Makefile.in).
 *
 * What ch2 expects of these macros beyond their arguments, and where:
 *   - CreateRecvTransfer is called without a buffer (0, 0), but always where `rhandle` is the
 *     request: the buffer is known before the sender is asked to send, so that data never waits for
 *     the host, in the blocking form neither;
 *   - its `partner` must not be looked at: chnrndv.c says `from` in a function that has none;
 *   - a successful TestNBRecvTransfer may be all that is ever asked (test), or EndNBRecvTransfer
 *     follows (wait): the first gives the id back, the second finds that;
 *   - nobody looks whether a rendezvous message that came before its receive fits: its length is
 *     checked here.
 * Rendezvous with oneself never gets here (MPID_RNDV_SELF); short and eager messages to oneself do.
 * ch2 receives from the channel only in the blocking way, so there is no IRecvFromChannel. */
#ifndef MPID_LITE_CHANNEL_INCLUDED
#define MPID_LITE_CHANNEL_INCLUDED

#include "ch_lite/mpich1/channel_host.h"

#define MPIDPATCHLEVEL 2.0

#define MPID_ControlMsgAvail() lite_host_control_avail()
#define MPID_RecvAnyControl(pkt, size, from) lite_host_recv_control((pkt), (int)(size), (from))
#define MPID_SendControl(pkt, size, channel) lite_host_send_control((pkt), (int)(size), (channel))
#define MPID_SendControlBlock(pkt, size, channel) MPID_SendControl(pkt, size, channel)
#define MPID_SENDCONTROL(handle, pkt, size, channel) MPID_SendControl(pkt, size, channel)

#define MPID_SendChannel(buf, size, channel) lite_host_send((buf), (size), (channel))
#define MPID_RecvFromChannel(buf, size, channel) lite_host_recv((buf), (size), (channel))
#define MPID_ISendChannel(buf, size, channel, id) lite_host_isend((buf), (size), (channel), (id))
#define MPID_WSendChannel(id) lite_host_wait((id))
#define MPID_TSendChannel(id) lite_host_test((id))

/* More came than there is room for: what fits is there. The parameters of the macros below must not
 * be named as fields of the handles are. */
#define MPID_LITE_CHECK_LENGTH(handle)                                                        \
  ((void)(lite_host_received() > (handle)->len                                                \
              ? ((handle)->s.MPI_ERROR = MPI_ERR_TRUNCATE, (handle)->s.count = (handle)->len) \
              : 0))

#define MPID_CreateSendTransfer(data, bytes, who, name) (*(name) = 0)
#define MPID_CreateRecvTransfer(data, bytes, who, name) \
  lite_host_create_transfer(rhandle->buf, rhandle->len, (name), rhandle->rid)

#define MPID_StartNBRecvTransfer(data, bytes, who, name, handle, op) ((void)0)
#define MPID_TestNBRecvTransfer(handle) \
  (lite_host_test((handle)->rid) ? (MPID_LITE_CHECK_LENGTH(handle), 1) : 0)
#define MPID_EndNBRecvTransfer(handle, name, op) \
  (lite_host_wait((handle)->rid), MPID_LITE_CHECK_LENGTH(handle))
#define MPID_CompleteNBRecvTransfer(data, bytes, who, name, op) ((void)0)

#define MPID_StartRecvTransfer(data, bytes, who, name, handle, op) ((void)0)
#define MPID_TestRecvTransfer(handle) lite_host_look((handle)->rid)
#define MPID_RecvTransfer(data, bytes, who, name) \
  (lite_host_wait(rhandle->rid), MPID_LITE_CHECK_LENGTH(rhandle))
#define MPID_EndRecvTransfer(data, bytes, who, name, op) MPID_RecvTransfer(data, bytes, who, name)
#define MPID_CompleteRecvTransfer(data, bytes, who, name, op) ((void)0)

#define MPID_SendTransfer(data, bytes, who, name) \
  lite_host_send_transfer((data), (bytes), (who), (name))
#define MPID_StartSendTransfer(data, bytes, who, name, op) \
  lite_host_isend_transfer((data), (bytes), (who), (name), (op))
#define MPID_EndSendTransfer(data, bytes, who, name, op) lite_host_wait((op))
#define MPID_TestSendTransfer(op) lite_host_test((op))
#define MPID_StartNBSendTransfer(data, bytes, who, name, op) \
  lite_host_isend_transfer((data), (bytes), (who), (name), (op))
#define MPID_EndNBSendTransfer(handle, name, op) lite_host_wait((op))
#define MPID_TestNBSendTransfer(op) lite_host_test((op))

/* All hosts of a job have the same byte order and sizes. */
#define MPID_PKT_PACK(pkt, size, dest)
#define MPID_PKT_UNPACK(pkt, size, src)

/* The device's buffers are not tiny: nobody has to make room before he sends. */
#define MPID_DRAIN_INCOMING while (MPID_DeviceCheck(MPID_NOTBLOCKING) != -1)
#define MPID_DRAIN_INCOMING_FOR_TINY(is_non_blocking)

#endif
