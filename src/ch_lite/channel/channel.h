/* The channel interface: the only way from the protocols and from MPICH-1 to the
 * engine. Implemented by the files beside it on mplite/engine/engine.h; used by the core and the
 * protocol files. Plain C, usable without ch4.
 *
 * Names are MPICH's (thesis, appendix; MPICH-1 mpid/ch2). Every function but MPID_ControlMsgMore
 * and MPID_ViewAnyControl enters the progress gate by itself; a caller that already holds it (the
 * device) may call them as they are: the gate is re-entrant. Guarantees, each with its own test
 * (test/unit/channel_test.cpp):
 *   - control packets are FIFO per pair of processes; channel messages are FIFO per source, in the
 *     order in which they were sent, which is the order of their envelopes; transfers are matched
 *     by id and are in no order with either;
 *   - control, channel and transfer ids are separate spaces: no number of processes makes them
 *     collide;
 *   - MPID_SendControl and MPID_SendChannel never deadlock: they return without the receiver's
 *     help; the packet may be on the caller's stack;
 *   - a receive that is too short gets the first bytes, the rest is read and thrown away
 *     (MPID_RecvStatus says how long it was);
 *   - a peer that is lost completes every operation on it, with an error; nothing waits for it.
 * The calls that end in V take memory in pieces instead of a buffer: an array whose first `size`
 * bytes, in the order of the pieces, are the message (or the room for one). Array and memory must
 * stay until complete; pieces may be empty, and together have at least `size` bytes. Lengths are
 * 64-bit. Functions that return int give >= 0 or -errno (-EHOSTUNREACH, -ECONNRESET, -EPIPE,
 * -ETIMEDOUT …: peer lost; -ENOBUFS: in the handler with an empty pool; -EINVAL: unknown id).
 * Signal safety: all are signal-safe but those marked [ordinary]. */
#ifndef CH_LITE_CHANNEL_H_INCLUDED
#define CH_LITE_CHANNEL_H_INCLUDED

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MPID_CONTROL_BYTES_MAX 33792 /* of one control packet */
#define MPID_ANY_PARTNER (-1)

typedef uint64_t MPID_ChannelId;  /* a non-blocking operation under way: index and generation; 0 is
                                     none (complete at once) */
typedef uint64_t MPID_TransferId; /* names a transfer at its receiver; never 0 */

/* ---- the five required functions ---- */

/* Non-zero when a control packet can be read; moves what can be moved, does not wait. */
int MPID_ControlMsgAvail(void);
/* The same behind a packet that was just dealt with: looks at what has been read already, and at
 * the sockets only where everything has to be looked at (handler, helper thread), and there not
 * without end. A waiting caller
 * gets back to its completion without one more system call. */
int MPID_ControlMsgMore(void);
/* Moves what can be moved, although packets may wait that nobody can act upon. The gate is held. */
void MPID_ChannelMove(void);
/* Reads the next control packet into pkt (at most `size` bytes), its sender into *from; waits for
 * one when there is none [waiting: ordinary]. Returns its length. */
int MPID_RecvAnyControl(void* pkt, int size, int* from);
/* The same without a copy where that can be: *pkt points to the packet, in `spare` (room for
 * MPID_CONTROL_BYTES_MAX) or where it was read. It stays until the next call that receives a
 * control packet or asks for one. The gate is held, here and in MPID_ControlMsgMore. */
int MPID_ViewAnyControl(const void** pkt, void* spare, int* from);
/* MPID_ControlMsgAvail and MPID_ViewAnyControl in one: 0 when there is none. The gate is held.
 * Ordinary context: there has to be room for what the packet asks for (MPID_ChannelHeadroom).
 * *more: 0 when nothing has been read behind it, so that MPID_ControlMsgMore has nothing to look
 * at. */
int MPID_NextControl(const void** pkt, void* spare, int* from, int* more);
/* Sends a control packet (1 … MPID_CONTROL_BYTES_MAX bytes). Copies what the kernel does not take.
 */
int MPID_SendControl(const void* pkt, int size, int dest);
/* Reads the next channel message of `from`; waits for it [ordinary]. Returns its length. */
int64_t MPID_RecvFromChannel(void* buf, size_t maxsize, int from);
/* Sends on the channel; may copy what the kernel does not take, so it returns without the
 * receiver's help [ordinary]. */
int MPID_SendChannel(const void* buf, size_t size, int dest);

/* As MPID_SendControl: "the send may wait until the packet is received but does not have to". Here
 * they are the same. */
#define MPID_SendControlBlock(pkt, size, dest) MPID_SendControl(pkt, size, dest)
/* As MPID_SendControl, with `bytes` of data behind the packet, gathered without a copy: one packet
 * on the wire. */
int MPID_SendControlData(const void* pkt, int size, const void* data, int bytes, int dest);
/* As MPID_SendControlData, of a packet with MPID_CONTROL_HEAD bytes of memory before it that may be
 * written, aligned to 8: it leaves from there, in one piece. The gate is held. Ordinary context.
 * Data of a packet of up to MPID_CONTROL_FLAT bytes is better copied behind it first: that costs
 * less than what the kernel does for a list of pieces. */
#define MPID_CONTROL_HEAD 32
#define MPID_CONTROL_FLAT 2560
int MPID_SendControlInPlace(void* pkt, int size, const void* data, int bytes, int dest);

/* ---- non-blocking ---- */

/* *id is 0 when the send was complete at once. buf must stay until complete. */
int MPID_ISendChannel(const void* buf, size_t size, int dest, MPID_ChannelId* id);
int MPID_ISendChannelV(const struct iovec* pieces, size_t size, int dest, MPID_ChannelId* id);
int MPID_WSendChannel(MPID_ChannelId id); /* waits; 0 or -errno; id is gone [ordinary] */
int MPID_TSendChannel(
    MPID_ChannelId id); /* 1: complete (id is gone), 0: not yet, -errno: failed (id is gone) */
/* Copies what a send under way still needs: 1: its buffer may be reused, though it is not complete;
 * 0: the memory for copies is full [ordinary]. */
int MPID_KeepChannel(MPID_ChannelId id);
/* Posts a buffer for the next channel message of `from` that has none yet. */
int MPID_IRecvFromChannel(void* buf, size_t maxsize, int from, MPID_ChannelId* id);
int MPID_IRecvFromChannelV(const struct iovec* pieces, size_t maxsize, int from,
                           MPID_ChannelId* id);
/* Moves a receive of MPID_IRecvFromChannel that is not complete over to other memory, in pieces if
 * those are not null: what has arrived is copied there, the rest goes straight to it. The memory
 * before is free. */
int MPID_MoveRecvFromChannel(MPID_ChannelId id, void* buf, const struct iovec* pieces,
                             size_t maxsize);
int64_t MPID_WRecvFromChannel(
    MPID_ChannelId id); /* waits; the message's length or -errno; id is gone [ordinary] */
int MPID_RecvStatus(
    MPID_ChannelId id); /* 1: complete (fetch its length and free it by WRecvFromChannel), 0: not
                           yet, -errno: failed (id is gone) */

/* ---- out of band: transfers ---- */

/* Sender's side. The sender's id is only a place-holder in MPICH-1: *id is set to 0. */
void MPID_CreateSendTransfer(const void* buf, size_t size, int partner, MPID_TransferId* id);
/* Receiver's side: a new id for data that `partner` will send; hand it to the partner in a control
 * packet. -ENOBUFS: none free. MPID_ANY_PARTNER: whoever sends first (for ch2, which does not
 * always say); when any peer is lost before that, it fails. */
int MPID_CreateRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId* id);
/* The id in 31 bits, for a sender whose packets have an int for it: SendTransfer takes it in place
 * of the id. 0: more than 2^19 are under way. */
uint32_t MPID_TransferShortName(MPID_TransferId id);

int MPID_StartNBRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId id,
                             MPID_ChannelId* rid); /* where data goes from now on */
int MPID_TestNBRecvTransfer(MPID_ChannelId rid);   /* 1, 0, -errno */
int64_t MPID_EndNBRecvTransfer(
    MPID_TransferId id,
    MPID_ChannelId rid); /* waits; length or -errno; both ids are gone [ordinary] */
#define MPID_CompleteNBRecvTransfer(buf, size, partner, id, rid) MPID_EndNBRecvTransfer(id, rid)

int MPID_StartRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId id,
                           MPID_ChannelId* rid);
int MPID_TestRecvTransfer(MPID_ChannelId rid); /* 1: EndRecvTransfer will not wait */
int64_t MPID_EndRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId id,
                             MPID_ChannelId rid); /* [ordinary] */
#define MPID_CompleteRecvTransfer(buf, size, partner, id, rid) \
  MPID_EndRecvTransfer(buf, size, partner, id, rid)
int64_t MPID_RecvTransfer(void* buf, size_t size, int partner, MPID_TransferId id); /* [ordinary] */

int MPID_SendTransfer(const void* buf, size_t size, int partner,
                      MPID_TransferId id); /* waits until buf may be reused [ordinary] */
int MPID_StartSendTransfer(const void* buf, size_t size, int partner, MPID_TransferId id,
                           MPID_ChannelId* sid);
int MPID_TestSendTransfer(MPID_ChannelId sid);
int MPID_EndSendTransfer(const void* buf, size_t size, int partner, MPID_TransferId id,
                         MPID_ChannelId sid); /* [ordinary] */
int MPID_StartNBSendTransfer(const void* buf, size_t size, int partner, MPID_TransferId id,
                             MPID_ChannelId* sid);
/* The same for what is behind the first `from` bytes of `size`, in buf, or in pieces if that is not
 * null: both ends have moved the first ones, if any, another way. The receiver's has to be the
 * first call for this id. */
int MPID_StartNBSendTransferRest(const void* buf, const struct iovec* pieces, size_t from,
                                 size_t size, int partner, MPID_TransferId id, MPID_ChannelId* sid);
int MPID_StartNBRecvTransferRest(void* buf, const struct iovec* pieces, size_t from, size_t size,
                                 int partner, MPID_TransferId id, MPID_ChannelId* rid);
int MPID_TestNBSendTransfer(MPID_ChannelId sid);
int MPID_EndNBSendTransfer(MPID_TransferId id, MPID_ChannelId sid); /* [ordinary] */
/* Withdraws a receive transfer whose partner will not send (peer lost, job ending): both ids are
 * gone, late data is thrown away. */
void MPID_CancelRecvTransfer(MPID_TransferId id, MPID_ChannelId rid);

/* ---- what ch2 did not have, and the device's protocols need: completion without polling ids ----
 */

/* Calls done(arg, bytes or -errno) exactly once, gate held, perhaps in the handler, when `id` (of
 * ISendChannel, IRecvFromChannel, StartNB{Send,Recv}Transfer, and their V and Rest) completes; then
 * id (and the transfer's id) is gone. When it is complete already: called before this returns. */
void MPID_OnComplete(MPID_ChannelId id, void (*done)(void* arg, int64_t result), void* arg);

/* MPID_SendControl and MPID_ISendChannel, in one system call and straight from the caller's memory.
 * -EAGAIN: neither has been done, and this is no moment for it (something waits to be sent to dest,
 * or the packet is longer than an envelope): use the two, held together. */
int MPID_ISendBehind(const void* pkt, int size, const void* buf, size_t bytes, int dest,
                     MPID_ChannelId* id);

/* What is sent to dest between the two leaves in one system call. Nests. */
void MPID_ChannelHold(int dest);
void MPID_ChannelRelease(int dest);

/* Until MPID_ChannelGather(MPID_GATHER_NOTHING) small control packets, or those of up to a page and
 * a head, need not leave at once: those for one peer are copied and leave together, in one system
 * call, with the next packet that does not fit, anything else sent to that peer, the next poll, or
 * MPID_ChannelFlush. MPID_ChannelGathered: how many wait; whoever gathers sees to it that they do
 * not wait long. [ordinary] */
enum { MPID_GATHER_NOTHING, MPID_GATHER_SMALL, MPID_GATHER_PAGES };
void MPID_ChannelGather(int what);
int MPID_ChannelGathered(void);
void MPID_ChannelFlush(void);

/* The next wait is for this peer: look at its socket first. */
void MPID_ChannelPrefer(int peer);

/* In the callback of a receive transfer (MPID_OnComplete): the peer hears that its data is here
 * before it gets anything that is sent from now on. So its send is complete by then. */
void MPID_ChannelAcknowledge(int peer);

/* Called by controllers (gate held, perhaps in the handler) and by MPID_ChannelPoll whenever
 * something may have arrived: the device's loop `while (MPID_ControlMsgAvail()) {
 * MPID_RecvAnyControl(…); dispatch }`. */
void MPID_ChannelSetProgress(void (*progress)(void* arg), void* arg); /* [ordinary] */
/* Called once per lost peer, gate held, perhaps in the handler, after its channel operations were
 * completed with that error. error: an errno. */
void MPID_ChannelSetLost(void (*lost)(void* arg, int peer, int error), void* arg); /* [ordinary] */
/* Non-zero, in that callback and after: the loss concerns only who deals with just this peer. It is
 * a process of another job that ended in order, was parted from, or could not be reached at its
 * port. */
int MPID_ChannelDeparted(int peer);
/* Called when a process of another job becomes peer number `peer`: the number of peers so far, or
 * one whose process nobody deals with any more. `window`: the credit that it gives, in bytes.
 * Returns 0 when that cannot be: no memory, or something is left of the process before. Gate held
 * [ordinary]. */
void MPID_ChannelSetIntroduce(int (*introduce)(void* arg, int peer, uint32_t window),
                              void* arg); /* [ordinary] */
/* Called for a channel message that begins to come while no receive is posted for it: whether there
 * will be one. 0: nothing has announced it, and its sender is given up. Without this function it
 * waits for its receive. Gate held, perhaps in the handler. */
void MPID_ChannelSetAwaited(int (*awaited)(void* arg, int peer), void* arg); /* [ordinary] */
/* Non-zero while running in the signal handler: nothing may be allocated then. */
int MPID_ChannelInHandler(void);
/* Whether the engine's pools bear one more control packet's worth of answers; false only in the
 * handler. */
int MPID_ChannelHeadroom(void);
/* Something is left in a socket, or put off, for want of memory or nodes. In the handler: no signal
 * comes for it again, and progress in ordinary context is to follow soon. */
void MPID_ChannelStarved(void);
/* Tops up pools, prints deferred log lines. [ordinary] 0 or -ENOMEM. */
int MPID_ChannelRefill(void);
/* Sleeps at most timeout_ns until something arrives, with the gate released. [ordinary] */
void MPID_ChannelWait(int64_t timeout_ns);
/* Whether something is outstanding that should move while the application computes; drives arming
 * (controller.h). What is queued here is that in any case. Returns what it comes to. */
int MPID_ChannelSetOutstanding(int outstanding);
/* Starts a connection if there is none: then the end of a peer from whom only a receive waits is
 * noticed. [ordinary] */
void MPID_ChannelReach(int peer);
/* Whether long transfers to the peer go over several connections; channel messages never do. */
int MPID_ChannelSpreads(int peer);
/* 0, or the errno for which the peer was given up. */
int MPID_ChannelPeerError(int peer);
/* "rank 3 on host b (10.0.0.2 port 4711)". [ordinary] */
const char* MPID_ChannelDescribe(int peer, char* text, size_t size);
/* What stands between this process and the peer, behind what MPID_ChannelDescribe says: "rank 3 on
 * host b (10.0.0.2 port 4711): connected, 0 bytes to send, …". MPID_CHANNEL_REPORT_BYTES suffice.
 * The gate is held. [ordinary] */
enum { MPID_CHANNEL_REPORT_BYTES = 672 };
const char* MPID_ChannelReport(int peer, char* text, size_t size);
/* Whether that would be worth telling: a connection is open (1), or (2) something waits to be sent,
 * a connection is being made, or the peer was lost. 0: none of it. The gate is held. [ordinary] */
int MPID_ChannelUnderway(int peer);
/* Fresh random bytes that nobody else can know. */
void MPID_ChannelRandom(void* bytes, size_t count);
/* Frames that the kernel has not taken yet, over all peers. */
uint64_t MPID_ChannelQueued(void);

#ifdef __cplusplus
}

namespace mplite {
class Gate;
struct Counters;
Gate& channel_gate(); /* of the engine that channel_bind (channel_state.h) named */
Counters& channel_counters();
}  // namespace mplite
#endif
#endif
