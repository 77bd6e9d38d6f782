// Point-to-point sends: which protocol each goes by.
#include "ch_lite/device/device.h"
#include "ch_lite/protocols/eager.h"
#include "ch_lite/protocols/rendezvous.h"
#include "ch_lite/protocols/self.h"

namespace ch_lite {
namespace {

constexpr std::uint64_t kLookForCreditMax = 16 * 1024;

}  // namespace

int Device::isend(const Memory& memory, std::uint64_t bytes, int peer, const MatchKey& key,
                  bool synchronous, void* cookie, Request** request) {
  if (peer == core_.self())
    return send_self(core_, memory, bytes, key, synchronous, cookie,
                     request);  // not without `request`
  Peer& p = core_.peers[peer];
  if (p.lost != 0) return core_.report(LITE_ERR_PEER_LOST, peer);
  if (is_short(bytes, core_.cutoffs.base()) &&
      p.credits[kPointToPoint].spend(message_charge(bytes)))
    return send_short(core_, memory, bytes, peer, key, synchronous, cookie,
                      request);  // the common case
  if (request == nullptr) return LITE_PENDING;
  const auto choose = [&] {
    return choose_protocol(bytes, core_.cutoffs.of(p, peer, bytes), p.credits[kPointToPoint].left(),
                           p.credits[kPointToPoint].spare());
  };
  Choice choice = choose();
  // Credit may be back: a program that starts many sends in a row looks at the sockets here only. A
  // long message is as well off by rendezvous (64 KB: better by 15 % where both sides stream).
  if (choice.out_of_credit && bytes <= kLookForCreditMax) {
    progress();
    if (p.lost != 0) return core_.report(LITE_ERR_PEER_LOST, peer);
    choice = choose();
  }
  mplite::Counters& c = core_.counters();
  if (choice.out_of_credit) {
    ++c.credit_stalls;
    core_.trace.stalled(peer, bytes, p.credits[kPointToPoint].left());
  }
  if (choice.protocol == Protocol::kShort) {
    CHLITE_CHECK(p.credits[kPointToPoint].spend(choice.charge));
    return send_short(core_, memory, bytes, peer, key, synchronous, cookie, request);
  }
  int result;
  if (choice.protocol == Protocol::kEager) {
    ++c.eager_msgs;
    c.eager_bytes += bytes;
    result = send_eager(core_, memory, bytes, peer, key, synchronous, cookie, request);
  } else {
    ++c.rndv_msgs;
    c.rndv_bytes += bytes;
    result = send_rendezvous(core_, memory, bytes, peer, key, choice.fragment, cookie, request);
  }
  if (result >= 0 && choice.charge != 0)
    CHLITE_CHECK(p.credits[kPointToPoint].spend(choice.charge));
  return result;
}

}  // namespace ch_lite
