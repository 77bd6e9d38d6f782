// Which way a message goes.
#include "ch_lite/core/protocol.h"

#include <algorithm>

#include "ch_lite/core/credits.h"

namespace ch_lite {
namespace {

bool within(std::uint64_t bytes, std::uint64_t cutoff) { return cutoff != 0 && bytes <= cutoff; }

}  // namespace

Choice choose_protocol(std::uint64_t bytes, const Cutoffs& cutoffs, std::uint64_t credit_left,
                       std::uint64_t spare) {
  Protocol wanted = Protocol::kRendezvous;
  if (is_short(bytes, cutoffs))
    wanted = Protocol::kShort;
  else if (within(bytes, cutoffs.eager_max))
    wanted = Protocol::kEager;
  if (wanted == Protocol::kRendezvous) {
    for (std::uint64_t fragment = std::min(cutoffs.eager_max, cutoffs.fragment_max);;
         fragment = kFragmentBytes) {
      const std::uint64_t cost = message_charge(fragment);
      if (fragment != 0 && fragment < bytes && cost <= spare)
        return {Protocol::kRendezvous, cost, false, fragment};
      if (fragment <= kFragmentBytes) return {Protocol::kRendezvous, 0, false};
    }
  }
  const std::uint64_t charge = message_charge(bytes);
  if (charge > credit_left) return {Protocol::kRendezvous, 0, true};
  return {wanted, charge, false};
}

Choice choose_am_protocol(std::uint64_t header_bytes, std::uint64_t data_bytes,
                          const Cutoffs& cutoffs, std::uint64_t credit_left) {
  Protocol wanted = Protocol::kRendezvous;
  if (data_bytes == 0 || (within(data_bytes, cutoffs.short_max) &&
                          padded_header(header_bytes) + data_bytes <= kPacketDataMax))
    wanted = Protocol::kShort;
  else if (within(data_bytes, cutoffs.eager_max))
    wanted = Protocol::kEager;

  if (wanted != Protocol::kRendezvous) {
    const std::uint64_t charge = message_charge(padded_header(header_bytes) + data_bytes);
    if (charge <= credit_left) return {wanted, charge, false};
    if (data_bytes == 0) return {Protocol::kWait, 0, true};
  }
  const std::uint64_t charge = message_charge(padded_header(header_bytes));
  const bool out_of_credit = wanted != Protocol::kRendezvous || charge > credit_left;
  if (charge > credit_left) return {Protocol::kWait, 0, out_of_credit};
  return {Protocol::kRendezvous, charge, out_of_credit};
}

}  // namespace ch_lite
