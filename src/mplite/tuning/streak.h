// Whether a send is one of many to one peer in a row, whose packets may leave together, or has
// company that the application has told of. Pure decisions; used by api.cpp.
#pragma once
#include <cstdint>

namespace mplite {

// A system call per message bounds the rate of small messages; gathered, dozens share one. But a
// message that waits for company must find it at once: so only where the application does nothing
// but send, call after call, to one peer. The first sends of a streak leave by themselves: how
// many, the last streak tells. An application that stays away between two sends (a gathered message
// then leaves by the backstop, late) makes that many times more; who keeps sending for long has it
// forgiven. Ordinary context, serialised as the calls of ch_lite.h are.
class Streak {
 public:
  static constexpr std::uint32_t kAlone =
      4;  // sends that leave by themselves at the beginning of a streak,
  static constexpr std::uint32_t kAloneAgain = 1;  // and where the one before was long:
  static constexpr std::uint32_t kLong = 16;       // so many sends
  static constexpr std::uint32_t kAloneMax = 1u << 12;
  static constexpr std::uint32_t kForgiven = 1u << 12;  // sends since a message was late
  static constexpr int kBelieved = 64;  // messages with company, for one of them that is late

  // The application sends to `peer`, and nothing but sends came since the last one
  // (`nothing_else`); `late`: how often gathered messages have left late so far. True: it may be
  // gathered.
  bool send(int peer, bool nothing_else, std::uint64_t late) {
    if (late != late_) [[unlikely]]
      was_late(late);
    if (!nothing_else || peer != peer_) [[likely]] {
      long_ = length_ >= kLong;
      length_ = 0;
      peer_ = peer;
    }
    ++length_;
    if (since_late_ < kForgiven) [[unlikely]] {
      if (++since_late_ == kForgiven) price_ = kAlone;
    }
    if (length_ <= (long_ && price_ == kAlone ? kAloneAgain : price_)) [[likely]]
      return false;
    company_ = false;
    return true;
  }

  // The application has said that it will say more to that peer soon: asked for each message,
  // whatever came before it. Believed while one in kBelieved such messages at most leaves late.
  bool with_company(std::uint64_t late) {
    if (late != late_) [[unlikely]]
      was_late(late);
    if (belief_ < kBelieved) ++belief_;
    if (belief_ <= 0) return false;
    company_ = true;
    return true;
  }

 private:
  // Of the two kinds that one which was gathered last.
  [[gnu::noinline]] void was_late(std::uint64_t late) {
    late_ = late;
    if (company_) {
      belief_ = belief_ > 0 ? belief_ - kBelieved : belief_;
      return;
    }
    price_ = price_ < kAloneMax / 4 ? price_ * 4 : kAloneMax;
    length_ = since_late_ = 0;
    long_ = false;
  }

  int peer_ = -1;
  std::uint32_t length_ = 0;
  std::uint32_t price_ = kAlone;
  std::uint32_t since_late_ = 0;
  std::uint64_t late_ = 0;
  int belief_ = kBelieved;
  bool long_ = false;
  bool company_ = false;  // what was gathered last
};

}  // namespace mplite
