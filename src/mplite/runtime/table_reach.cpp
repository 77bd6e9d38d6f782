// Which ranks of an address table can reach each other, and at which of their addresses.
#include "mplite/runtime/table_reach.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "mplite/base/address.h"
#include "mplite/base/bounded_text.h"
#include "mplite/engine/engine_options.h"

namespace mplite {
namespace {

// Without those whose bits are set in `numbers`; at least one stays.
void keep_others(PeerAddress& peer, std::uint8_t numbers) {
  if (numbers == 0) return;
  const PeerAddress all = peer;
  int kept = 0;
  for (CompactAddress& each : peer.more) each = {};
  for (int k = 0; k < all.count(); ++k) {
    if ((numbers >> k & 1) != 0) continue;
    if (kept == 0)
      peer.address = all.at(k);
    else
      peer.more[kept - 1] = all.more[k - 1];
    ++kept;
  }
}

// One address of one rank.
struct Place {
  std::uint8_t address[17];  // with the family
  std::uint8_t number;       // of it among the rank's
  std::uint16_t port;
  int rank;
};

// Whether two ranks may have one address: in one network stack, at two ports. One port cannot be
// had twice there: these are copies of a machine that has not booted since.
bool may_share_address(const void* table, const Place& one, const Place& other) {
  const Card a = card_at(table, one.rank), b = card_at(table, other.rank);
  static const std::uint8_t kUnknown[sizeof Card::network] = {};
  const bool known = std::memcmp(a.network, kUnknown, sizeof kUnknown) != 0 &&
                     std::memcmp(b.network, kUnknown, sizeof kUnknown) != 0;
  return (known ? std::memcmp(a.network, b.network, sizeof kUnknown) == 0
                : std::strncmp(a.host, b.host, sizeof a.host) == 0) &&
         one.port != other.port;
}

// All of the table's, sorted by address and rank. Returns how many; `places` has room.
int list_places(const void* table, int size, Place* places) {
  int count = 0;
  const auto add = [&](int rank, int number, std::uint8_t family, std::uint16_t port,
                       const std::uint8_t* address) {
    Place& place = places[count++];
    place.address[0] = family;
    std::memcpy(place.address + 1, address, sizeof place.address - 1);
    place.number = static_cast<std::uint8_t>(number);
    place.port = port;
    place.rank = rank;
  };
  for (int i = 0; i < size; ++i) {
    const Card card = card_at(table, i);
    add(i, 0, card.family, card.port, card.address);
    for (int k = 1; k < kAddressesMax && card.more[k - 1].family != 0; ++k)
      add(i, k, card.more[k - 1].family, card.more[k - 1].port, card.more[k - 1].bytes);
  }
  std::sort(places, places + count, [](const Place& a, const Place& b) {
    const int order = std::memcmp(a.address, b.address, sizeof a.address);
    return order != 0 ? order < 0 : a.rank < b.rank;
  });
  return count;
}

// Calls `each` with every group of equal addresses that are not of one network stack: its first
// place, its end, and one of another stack than the first.
template <typename F>
void for_clashes(const void* table, const Place* places, int count, F each) {
  for (int begin = 0, end = 0; begin < count; begin = end) {
    int other = -1;
    for (end = begin + 1; end < count && std::memcmp(places[end].address, places[begin].address,
                                                     sizeof places[end].address) == 0;
         ++end)
      if (other < 0 && !may_share_address(table, places[begin], places[end])) other = end;
    if (other >= 0) each(begin, end, other);
  }
}

// The lowest pair of ranks with one address of which one has no other; a.rank is the lower one's,
// -1: there is none. `clashing`: bits of each rank's addresses.
void find_unreachable(const void* table, const PeerAddress* peers, const Place* places, int count,
                      const std::uint8_t* clashing, Place& a, Place& b) {
  a.rank = -1;
  for_clashes(table, places, count, [&](int begin, int end, int other) {
    for (int i = begin; i < end; ++i) {
      const int rank = places[i].rank;
      if (clashing[rank] != (1u << peers[rank].count()) - 1) continue;
      const bool shares_with_begin =
          i == begin || may_share_address(table, places[begin], places[i]);
      const Place& partner = places[shares_with_begin ? other : begin];
      if (a.rank >= 0 && a.rank <= std::min(rank, partner.rank)) continue;
      a = rank < partner.rank ? places[i] : partner;
      b = rank < partner.rank ? partner : places[i];
    }
  });
}

bool may_call_one_of(std::uint8_t kinds, const PeerAddress& peer) {
  for (int k = 0; k < peer.count(); ++k)
    if (may_call(kinds, peer.at(k))) return true;
  return false;
}

}  // namespace

StartFault leave_out_clashes(const void* table, int size, PeerAddress* peers, BoundedText& out) {
  const std::size_t ranks = static_cast<unsigned>(size);  // gcc 14 takes it for negative otherwise
  auto* places = new (std::nothrow) Place[ranks * kAddressesMax];
  auto* clashing = new (std::nothrow) std::uint8_t[ranks]();
  Place a = {}, b = {};
  const bool memory = places != nullptr && clashing != nullptr;
  if (memory) {
    const int count = list_places(table, size, places);
    for_clashes(table, places, count, [&](int begin, int end, int) {
      for (int i = begin; i < end; ++i) {
        std::uint8_t& numbers = clashing[places[i].rank];
        numbers = static_cast<std::uint8_t>(numbers | 1u << places[i].number);
      }
    });
    find_unreachable(table, peers, places, count, clashing, a, b);
    for (int i = 0; a.rank < 0 && i < size; ++i) keep_others(peers[i], clashing[i]);
  }
  delete[] places;
  delete[] clashing;
  if (!memory) {
    out.add("out of memory for the addresses of %d ranks", size);
    return StartFault::kMemory;
  }
  if (a.rank < 0) return StartFault::kNone;
  CompactAddress both = {};
  both.family = a.address[0];
  std::memcpy(both.bytes, a.address + 1, sizeof both.bytes);
  char text[96];
  out.add(
      "rank %d on host %s and rank %d on host %s have the same address (%s) and are not on one "
      "host, so that they cannot reach each other; name a network interface with "
      "an address of its own on each host by LITE_IFACE",
      a.rank, peers[a.rank].host, b.rank, peers[b.rank].host,
      format_address(expanded(both), text, sizeof text));
  return StartFault::kTable;
}

bool loopback_is_out_of_reach(const PeerAddress* peers, int size, BoundedText& out) {
  int inside = 0;
  while (inside < size && !is_loopback(peers[inside].address)) ++inside;
  if (inside == size) return false;
  for (int i = 0; i < size; ++i) {
    if (std::strncmp(peers[i].host, peers[inside].host, sizeof peers[i].host) == 0) continue;
    char text[96];
    out.add(
        "rank %d on host %s listens on loopback (%s), where rank %d on host %s cannot reach it; "
        "name a network interface with LITE_IFACE",
        inside, peers[inside].host, format_address(peers[inside].address, text, sizeof text), i,
        peers[i].host);
    return true;
  }
  return false;
}

bool set_scopes(const void* table, int size, int rank, PeerAddress* peers, BoundedText& out) {
  const Card own = card_at(table, rank);
  for (int i = 0; i < size; ++i) {
    if (peers[i].address.ss_family != AF_INET6 || !is_link_local(peers[i].address)) continue;
    const bool same_host = std::strncmp(peers[i].host, peers[rank].host, sizeof peers[i].host) == 0;
    const std::uint32_t scope = same_host ? card_at(table, i).scope : own.scope;
    if (scope == 0) {
      char text[96];
      out.add(
          "rank %d on host %s has a link-local address only (%s) and rank %d none; name an "
          "interface with LITE_IFACE on all hosts",
          i, peers[i].host, format_address(peers[i].address, text, sizeof text), rank);
      return false;
    }
    set_scope(peers[i].address, scope);
  }
  return true;
}

void find_apart(const void* table, int size, int rank, PeerAddress* peers) {
  const std::uint8_t own = card_at(table, rank).kinds;
  for (int i = 0; i < size; ++i)
    peers[i].apart = i != rank && !may_call_one_of(own, peers[i]) &&
                     !may_call_one_of(card_at(table, i).kinds, peers[rank]);
}

}  // namespace mplite
