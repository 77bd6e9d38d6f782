// The address table: cards that other processes published. True cards, then bytes of them changed.
#include <algorithm>

#include "fuzz.h"
#include "mplite/base/address.h"
#include "mplite/engine/engine.h"
#include "mplite/runtime/secret_file.h"
#include "mplite/runtime/wireup.h"

using namespace mplite;
using fuzz::check;

namespace {

constexpr int kRanksMax = 6;

// Not by make_card(), which asks this machine what a card has to say.
Card true_card(int rank, std::uint8_t kind) {
  Card card = {};
  static const Card made = [] {
    Card failed = {};
    make_failed_card("probe", &failed);  // for the magic and the version
    return failed;
  }();
  card.magic = made.magic;
  card.version = made.version;
  card.family = (kind & 1) != 0 ? 6 : 4;
  card.port = static_cast<std::uint16_t>(4000 + rank);
  static const std::uint8_t kPrefixes[4][4] = {
      {10, 0, 0, 1}, {127, 0, 0, 1}, {0xfe, 0x80, 0, 0}, {0x20, 1, 0xd, 0xb8}};
  std::memcpy(card.address, kPrefixes[kind / 2 % 4], 4);
  card.address[card.family == 4 ? 3 : 15] =
      static_cast<std::uint8_t>((kind & 8) != 0 ? 1 : rank + 1);
  card.scope = (kind & 16) != 0 ? 2 : 0;
  std::snprintf(card.host, sizeof card.host, "host%d", (kind & 32) != 0 ? rank : 0);
  card.place[0] = card.network[0] = static_cast<std::uint8_t>(kind >> 6);
  card.credits = card.unexpected_max = 1 << 20;
  // One more of its own, and one that others have.
  const auto own = static_cast<std::uint8_t>(rank + 1);
  const CompactAddress more[2] = {{{10, 1, 0, own}, 0, 5000, 4, 0},
                                  {{10, 0, 2, 15}, 0, 5001, 4, 0}};
  for (int i = 0, bit = 64; i < 2; ++i, bit *= 2)
    if ((kind & bit) != 0) card.more[card.more[0].family != 0 ? 1 : 0] = more[i];
  return card;
}

}  // namespace

std::vector<fuzz::Seed> fuzz_seeds() {
  std::vector<fuzz::Seed> seeds;
  for (const std::uint8_t kind : {0, 2, 4, 5, 7, 8, 21, 40, 60, 72, 136, 200, 201})
    seeds.push_back({3, 1, 0, kind, kind, static_cast<std::uint8_t>(kind ^ 32), 0, 0, 16, 0, 1});
  seeds.push_back(
      {2, 0, 1, 0, 255, 'o', 'u', 't', ' ', 'o', 'f', '\n', ' ', 'm', 'e', 'm', 'o', 'r', 'y'});
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Choices input(data, size);
  const int ranks = 1 + input.byte() % kRanksMax;
  const int own = input.byte() % ranks;
  SecretFile file;
  file.there = input.flip();
  fuzz::Block table(static_cast<std::size_t>(ranks) * kCardBytes + 1);
  std::uint8_t* cards = table.data() + 1;  // no alignment
  for (int i = 0; i < ranks; ++i) {
    Card card = true_card(i, input.byte());
    make_fingerprint(file, card.share, card.fingerprint);
    std::memcpy(cards + static_cast<std::size_t>(i) * kCardBytes, &card, sizeof card);
  }
  if (ranks > 1 && input.byte() == 255)
    make_failed_card(input.text(300).c_str(), cards + kCardBytes);
  while (input.any()) {  // runs of bytes, anywhere
    const std::size_t at = input.below(table.size() - 1);
    const auto bytes = input.bytes(std::min<std::size_t>(input.byte() % 80, table.size() - 1 - at));
    std::copy(bytes.begin(), bytes.end(), cards + at);
  }

  check(ranks_sharing_place(cards, ranks, own) >= 1);
  char sentence[512] = "", error[512] = "", little[20] = "";
  const int failed = find_failed(cards, ranks, sentence, sizeof sentence);
  check(failed >= -1 && failed < ranks);
  if (failed >= 0) fuzz::check_sentence(sentence, sizeof sentence);
  std::vector<PeerAddress> peers(static_cast<std::size_t>(ranks));
  std::uint8_t secret[kSecretBytes] = {}, other[kSecretBytes] = {};
  const StartFault fault =
      decode_table(cards, ranks, own, file, peers.data(), secret, error, sizeof error);
  check(decode_table(cards, ranks, own, file, peers.data(), other, little, sizeof little) == fault);
  check(std::memcmp(secret, other, sizeof secret) == 0 &&
        std::memchr(little, '\0', sizeof little) != nullptr);
  if (fault != StartFault::kNone) {
    fuzz::check_sentence(error, sizeof error);
    check(error[0] != '\0');
    return 0;
  }
  check(failed < 0);
  for (const PeerAddress& peer : peers) {
    check(peer.address.ss_family == AF_INET || peer.address.ss_family == AF_INET6);
    fuzz::check_sentence(peer.host, sizeof peer.host);
    char text[96];
    format_address(peer.address, text, sizeof text);
    fuzz::check_sentence(text, sizeof text);
    for (const CompactAddress& more : peer.more) {
      check(more.family == 0 || more.family == 4 || more.family == 6);
      format_address(expanded(more), text, sizeof text);
      fuzz::check_sentence(text, sizeof text);
    }
  }
  return 0;
}
