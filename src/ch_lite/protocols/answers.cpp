// The packets that answer: CTS and ack.
#include "ch_lite/protocols/answers.h"

namespace ch_lite {

void send_ack(Core& core, int peer, std::uint64_t sender) {
  AckPacket ack{};
  ack.header.type = PacketType::kSyncAck;
  ack.sender = sender;
  core.send_answer(peer, &ack.header, sizeof ack);
}

int send_cts(Core& core, int peer, std::uint64_t sender, MPID_TransferId transfer,
             std::uint64_t accepted, bool resend_fragment) {
  CtsPacket cts{};
  cts.header.type = PacketType::kCts;
  cts.sender = sender;
  cts.transfer = transfer;
  cts.accepted = accepted;
  cts.resend_fragment = resend_fragment ? 1 : 0;
  return core.send_answer(peer, &cts.header, sizeof cts);
}

}  // namespace ch_lite
