/* MPICH-1's channel operations (ch2) as calls of channel_host.h. Takes the place of ch2's own channel.h, which is written for message-passing libraries.
 * Included by ch2's packets.h, of which the device directory therefore has a link: a quoted include is looked for beside the file that includes (Makefile.in).
 *
 * What ch2 expects of these macros beyond their arguments, and where:
 *   - CreateRecvTransfer is called without a buffer (0, 0), but always where `rhandle` is the request: the buffer is known before the sender is asked to
 *     send, so that data never waits for the host, in the blocking form neither;
 *   - its `partner` must not be looked at: chnrndv.c says `from` in a function that has none;
 *   - a successful TestNBRecvTransfer may be all that is ever asked (test), or EndNBRecvTransfer follows (wait): the first gives the id back, the second finds that;
 *   - nobody looks whether a rendezvous message that came before its receive fits: its length is checked here.
 * Rendezvous with oneself never gets here (MPID_RNDV_SELF); short and eager messages to oneself do.
 * ch2 receives from the channel only in the blocking way, so there is no IRecvFromChannel. */
#ifndef MPID_LITE_CHANNEL_INCLUDED
#define MPID_LITE_CHANNEL_INCLUDED

#include "channel_host.h"

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

/* More came than there is room for: what fits is there. */
#define MPID_LITE_CHECK_LENGTH(request)                    \
  ((void)(lite_host_received() > (request)->len            \
              ? ((request)->s.MPI_ERROR = MPI_ERR_TRUNCATE, (request)->s.count = (request)->len) \
              : 0))

#define MPID_CreateSendTransfer(buf, size, partner, id) (*(id) = 0)
#define MPID_CreateRecvTransfer(buf, size, partner, id) lite_host_create_transfer(rhandle->buf, rhandle->len, (id), rhandle->rid)

#define MPID_StartNBRecvTransfer(buf, size, partner, id, request, rid) ((void)0)
#define MPID_TestNBRecvTransfer(request) (lite_host_test((request)->rid) ? (MPID_LITE_CHECK_LENGTH(request), 1) : 0)
#define MPID_EndNBRecvTransfer(request, id, rid) (lite_host_wait((request)->rid), MPID_LITE_CHECK_LENGTH(request))
#define MPID_CompleteNBRecvTransfer(buf, size, partner, id, rid) ((void)0)

#define MPID_StartRecvTransfer(buf, size, partner, id, request, rid) ((void)0)
#define MPID_TestRecvTransfer(request) lite_host_look((request)->rid)
#define MPID_RecvTransfer(buf, size, partner, id) (lite_host_wait(rhandle->rid), MPID_LITE_CHECK_LENGTH(rhandle))
#define MPID_EndRecvTransfer(buf, size, partner, id, rid) MPID_RecvTransfer(buf, size, partner, id)
#define MPID_CompleteRecvTransfer(buf, size, partner, id, rid) ((void)0)

#define MPID_SendTransfer(buf, size, partner, id) lite_host_send_transfer((buf), (size), (partner), (id))
#define MPID_StartSendTransfer(buf, size, partner, id, sid) lite_host_isend_transfer((buf), (size), (partner), (id), (sid))
#define MPID_EndSendTransfer(buf, size, partner, id, sid) lite_host_wait((sid))
#define MPID_TestSendTransfer(sid) lite_host_test((sid))
#define MPID_StartNBSendTransfer(buf, size, partner, id, sid) lite_host_isend_transfer((buf), (size), (partner), (id), (sid))
#define MPID_EndNBSendTransfer(request, id, sid) lite_host_wait((sid))
#define MPID_TestNBSendTransfer(sid) lite_host_test((sid))

/* All hosts of a job have the same byte order and sizes. */
#define MPID_PKT_PACK(pkt, size, dest)
#define MPID_PKT_UNPACK(pkt, size, src)

/* The device's buffers are not tiny: nobody has to make room before he sends. */
#define MPID_DRAIN_INCOMING while (MPID_DeviceCheck(MPID_NOTBLOCKING) != -1)
#define MPID_DRAIN_INCOMING_FOR_TINY(is_non_blocking)

#endif
