// Which of a peer's addresses is tried next, and what became of the others. Pure, but for its
// state. A member of Peer; used by connector.h.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "mplite/base/address.h"
#include "mplite/base/signal_safe.h"

namespace mplite {

// Addresses have numbers, 0 the best. A round tries each once: in order, but those last that led
// nowhere with other peers. One that has not answered for a while is tried on beside the next, and
// whichever answers first is taken (RFC 8305). Signal-safe.
class AddressTurns {
 public:
  // Of a peer with `count` addresses; bits of `last`: those that are tried last.
  void start(int count, std::uint8_t last) MPLITE_SIGNAL_SAFE {
    *this = {};
    count_ = static_cast<std::uint8_t>(count);
    last_ = last;
    current_ = number_at(0);
  }
  // The peer has called us, from that address of `count`.
  void called_from(int count, int number) MPLITE_SIGNAL_SAFE {
    start(count, 0);
    current_ = static_cast<std::uint8_t>(number);
  }
  int count() const MPLITE_SIGNAL_SAFE { return count_; }
  int current() const MPLITE_SIGNAL_SAFE { return current_; }
  // Rounds that are over.
  int rounds() const MPLITE_SIGNAL_SAFE { return rounds_; }

  // An attempt with that one has failed with `error`; `final`: another would, too.
  void failed(int number, int error, bool final) MPLITE_SIGNAL_SAFE {
    error_[number] = static_cast<std::uint16_t>(error);
    if (final) final_ = static_cast<std::uint8_t>(final_ | 1u << number);
  }
  // An attempt with that one has come through: it is the current one. Bits of `beside`: those that
  // were being tried as well.
  void answered(int number, std::uint8_t beside) MPLITE_SIGNAL_SAFE {
    current_ = static_cast<std::uint8_t>(number);
    overtaken_ = beside;
  }
  // Bits: those that another one was quicker than.
  std::uint8_t overtaken() const MPLITE_SIGNAL_SAFE { return overtaken_; }
  // Why the last attempt with an address failed; 0: none has.
  int error_of(int number) const MPLITE_SIGNAL_SAFE { return error_[number]; }
  // The current one's connection was closed before it was up. Whether that is no accident any more,
  // and there is another of which nothing is known.
  bool closed() MPLITE_SIGNAL_SAFE {
    if (closes_ < UINT8_MAX) ++closes_;
    if (closes_ < 2) return false;
    for (int i = 0; i < count_; ++i)
      if (i != current_ && error_[i] == 0) return true;
    return false;
  }
  // Whether all are of no use any more.
  bool exhausted() const MPLITE_SIGNAL_SAFE { return final_ == (1u << count_) - 1; }

  // On to the next that may be of use. False: a round is over, and this is the first of another.
  // Not exhausted.
  bool next() MPLITE_SIGNAL_SAFE {
    bool same_round = true;
    closes_ = 0;
    do {
      if (++position_ == count_) {
        position_ = 0;
        if (rounds_ < UINT8_MAX) ++rounds_;
        same_round = false;
      }
      current_ = number_at(position_);
    } while ((final_ >> current_ & 1) != 0);
    return same_round;
  }

  // On to the next of this round that may be of use, while the current one is tried on. Bits of
  // `tried`: those that are being tried. False: there is none, and the current one stays.
  bool next_beside(std::uint8_t tried) MPLITE_SIGNAL_SAFE {
    for (int position = position_ + 1; position < count_; ++position) {
      const std::uint8_t number = number_at(position);
      if (((final_ | tried) >> number & 1) != 0) continue;
      position_ = static_cast<std::uint8_t>(position);
      current_ = number;
      closes_ = 0;
      return true;
    }
    return false;
  }

  // The current one leads to the peer. Returns bits: those that have been tried and do not.
  std::uint8_t reached() MPLITE_SIGNAL_SAFE {
    std::uint8_t dead = 0;
    for (int i = 0; i < count_; ++i) {
      if (i != current_ && error_[i] != 0) dead = static_cast<std::uint8_t>(dead | 1u << i);
      error_[i] = 0;
    }
    return dead;
  }

 private:
  // The address whose turn is the `position`th of a round.
  std::uint8_t number_at(int position) const MPLITE_SIGNAL_SAFE {
    for (const bool at_the_end : {false, true})
      for (std::uint8_t i = 0; i < count_; ++i)
        if (((last_ >> i & 1) != 0) == at_the_end && position-- == 0) return i;
    return 0;
  }

  std::uint16_t error_[kAddressesMax] = {};
  std::uint8_t count_ = 1;
  std::uint8_t current_ = 0;
  std::uint8_t position_ = 0;
  std::uint8_t last_ = 0;
  std::uint8_t final_ = 0;
  std::uint8_t rounds_ = 0;
  std::uint8_t closes_ = 0;  // of the current one, in a row
  std::uint8_t overtaken_ = 0;
};

// Which numbers of addresses led nowhere with some peer where another one did lead to it: hosts of
// a cluster list their networks in the same order. A member of Connector. Signal-safe.
class DeadAddresses {
 public:
  // A peer was reached at its address number `current`; bits of `failed`: attempts with those ended
  // in an error, of `overtaken`: in nothing yet. Once that may be a lost SYN, twice it is no
  // accident.
  void learn(int current, std::uint8_t failed, std::uint8_t overtaken) MPLITE_SIGNAL_SAFE {
    const auto others = static_cast<std::uint8_t>(~(1u << current));
    dead_ = static_cast<std::uint8_t>((dead_ | failed | (overtaken & slow_)) & others);
    slow_ = static_cast<std::uint8_t>((slow_ | overtaken) & others);
  }
  std::uint8_t bits() const MPLITE_SIGNAL_SAFE { return dead_; }

 private:
  std::uint8_t dead_ = 0;
  std::uint8_t slow_ = 0;  // not quick enough for one peer so far
};

}  // namespace mplite
