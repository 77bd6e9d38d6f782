// The channel interface's transfers: data that its receiver has named an id for.
#include <algorithm>
#include <cerrno>

#include "ch_lite/channel/channel.h"
#include "ch_lite/channel/channel_ops.h"

using namespace mplite;
using namespace mplite::channel;

namespace {

int start_receive_transfer(const Memory& memory, std::size_t size, int partner, MPID_TransferId id,
                           MPID_ChannelId* rid) {
  *rid = 0;
  ChannelOp* op = find(id);
  if (op == nullptr ||
      (op->kind != ChannelOpKind::kRecvTransfer && op->kind != ChannelOpKind::kOrphan) ||
      (op->peer != partner && partner != MPID_ANY_PARTNER))
    return -EINVAL;
  op->buffer = memory.buffer;
  op->pieces = {memory.pieces};
  op->list = memory.pieces;
  op->size = size;
  op->started = true;
  *rid = id;
  if (op->peer >= 0) engine().resume_rx(op->peer);
  return 0;
}

}  // namespace

void MPID_CreateSendTransfer(const void*, size_t, int, MPID_TransferId* id) { *id = 0; }

int MPID_CreateRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId* id) {
  Hold hold(engine().gate());
  *id = 0;
  if (partner != MPID_ANY_PARTNER)
    if (const int error = engine().peer_error(partner); error != 0) return -error;
  ChannelOp* op = make_op(ChannelOpKind::kRecvTransfer, partner, buf, size);
  if (op == nullptr) return -ENOBUFS;
  *id = op->pool_handle;
  return 0;
}

uint32_t MPID_TransferShortName(MPID_TransferId id) { return Pool<ChannelOp>::short_name(id); }

int MPID_StartNBRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId id,
                             MPID_ChannelId* rid) {
  Hold hold(engine().gate());
  return start_receive_transfer(buf, size, partner, id, rid);
}

int MPID_TestNBRecvTransfer(MPID_ChannelId rid) {
  Hold hold(engine().gate());
  return test(rid, true);
}

int64_t MPID_EndNBRecvTransfer(MPID_TransferId id, MPID_ChannelId) {
  Hold hold(engine().gate());
  return wait_for(id);
}

int MPID_StartRecvTransfer(void* buf, size_t size, int partner, MPID_TransferId id,
                           MPID_ChannelId* rid) {
  return MPID_StartNBRecvTransfer(buf, size, partner, id, rid);
}

int MPID_TestRecvTransfer(MPID_ChannelId rid) { return MPID_TestNBRecvTransfer(rid); }

int64_t MPID_EndRecvTransfer(void*, size_t, int, MPID_TransferId id, MPID_ChannelId rid) {
  return MPID_EndNBRecvTransfer(id, rid);
}

int64_t MPID_RecvTransfer(void* buf, size_t size, int partner, MPID_TransferId id) {
  Hold hold(engine().gate());
  MPID_ChannelId rid = 0;
  const int rc = MPID_StartNBRecvTransfer(buf, size, partner, id, &rid);
  return rc < 0 ? rc : wait_for(rid);
}

int MPID_StartNBSendTransfer(const void* buf, size_t size, int partner, MPID_TransferId id,
                             MPID_ChannelId* sid) {
  Hold hold(engine().gate());
  return start_send(buf, size, partner, FrameKind::kTransfer, id, sid);
}

int MPID_StartNBSendTransferRest(const void* buf, const struct iovec* pieces, size_t from,
                                 size_t size, int partner, MPID_TransferId id,
                                 MPID_ChannelId* sid) {
  Hold hold(engine().gate());
  return start_send(pieces != nullptr ? Memory::in_pieces(pieces) : Memory(buf), size, partner,
                    FrameKind::kTransfer, id, sid, from);
}

int MPID_StartNBRecvTransferRest(void* buf, const struct iovec* pieces, size_t from, size_t size,
                                 int partner, MPID_TransferId id, MPID_ChannelId* rid) {
  Hold hold(engine().gate());
  *rid = 0;
  ChannelOp* op = find(id);
  if (op == nullptr || op->arrived != 0) return -EINVAL;
  op->arrived = op->begun = op->from = from;
  return start_receive_transfer(pieces != nullptr ? Memory::in_pieces(pieces) : Memory(buf), size,
                                partner, id, rid);
}

int MPID_TestNBSendTransfer(MPID_ChannelId sid) { return MPID_TSendChannel(sid); }

int MPID_EndNBSendTransfer(MPID_TransferId, MPID_ChannelId sid) { return MPID_WSendChannel(sid); }

int MPID_StartSendTransfer(const void* buf, size_t size, int partner, MPID_TransferId id,
                           MPID_ChannelId* sid) {
  return MPID_StartNBSendTransfer(buf, size, partner, id, sid);
}

int MPID_TestSendTransfer(MPID_ChannelId sid) { return MPID_TSendChannel(sid); }

int MPID_EndSendTransfer(const void*, size_t, int, MPID_TransferId, MPID_ChannelId sid) {
  return MPID_WSendChannel(sid);
}

int MPID_SendTransfer(const void* buf, size_t size, int partner, MPID_TransferId id) {
  Hold hold(engine().gate());
  MPID_ChannelId sid = 0;
  const int rc = MPID_StartNBSendTransfer(buf, size, partner, id, &sid);
  return rc < 0 ? rc : static_cast<int>(wait_for(sid));
}

void MPID_CancelRecvTransfer(MPID_TransferId id, MPID_ChannelId) {
  Hold hold(engine().gate());
  ChannelOp* op = find(id);
  if (op == nullptr ||
      (op->kind != ChannelOpKind::kRecvTransfer && op->kind != ChannelOpKind::kOrphan))
    return;
  const int peer = op->peer;
  const bool parked = op->kind == ChannelOpKind::kRecvTransfer && !op->started;
  if (peer >= 0) {
    engine().discard(peer, FrameKind::kTransfer, id);
    engine().discard(peer, FrameKind::kTransfer, MPID_TransferShortName(id));
  }
  free_op(op);
  if (peer >= 0 && parked) engine().resume_rx(peer);
}
