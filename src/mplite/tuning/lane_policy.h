// How many connections long data to one peer is spread over. Pure decisions; used by lanes.cpp.
#pragma once
#include <algorithm>
#include <cstdint>

#include "mplite/base/signal_safe.h"

namespace mplite {

// What TCP says of one lane; all of it counts up.
struct LaneSample {
  std::uint64_t acknowledged = 0;  // bytes of ours
  std::int64_t busy_ns = 0;        // with something of ours under way
  std::int64_t window_ns = 0;      // of that, while the receiver's window was full
};

// Some networks bound what one connection carries. More of them then carry more, and nothing is
// gained where the processor or the receiver is the bound. So: where neither is, twice as many
// lanes are tried, and stay if the rate rises by a tenth. Otherwise the next trial is later and
// later.
class LanePolicy {
 public:
  static constexpr int kMost = 16;  // the first connection among them
  // Of busy time, which the kernel counts in ticks of up to 10 ms: one measurement.
  static constexpr std::int64_t kWindowNs = 100'000'000;
  static constexpr std::uint64_t kWindowBytes = 1u << 20;
  static constexpr std::int64_t kOpenNs = 3'000'000'000;  // for the new lanes to come up
  static constexpr std::int64_t kAgainNs = 10'000'000'000, kAgainMostNs = 64 * kAgainNs;
  static constexpr int kUnsentBytes = 64 * 1024, kUnsentBackgroundBytes = 512 * 1024;
  static constexpr int kWaited = 64;  // times in a row
  static constexpr std::uint64_t kFrameLeastBytes = 64 * 1024;
  static constexpr int kSureWindows = 2;   // in a row, before a trial
  static constexpr int kTrialWindows = 3;  // of which the best counts: a packet may be lost
  static constexpr double kPays = 1.1, kPaysClearly = 1.25;  // times the rate before

  // `lanes`: as LITE_LANES says; 0: found by trials, up to kMost.
  void start(int lanes) MPLITE_SIGNAL_SAFE {
    tries_ = lanes == 0;
    used_ = wanted_ = tries_ ? 1 : lanes;
  }
  // Whether look() has to be called.
  bool tries() const MPLITE_SIGNAL_SAFE { return tries_; }
  // Lanes that data is spread over, as far as they are up.
  int used() const MPLITE_SIGNAL_SAFE { return used_; }
  // Trials that have paid.
  unsigned paid() const MPLITE_SIGNAL_SAFE { return paid_; }
  // Lanes that should be up.
  int wanted() const MPLITE_SIGNAL_SAFE { return wanted_; }

  // Of the next frame, where `rest` bytes are left of a transfer and a frame has at most `most`:
  // shorter and shorter, so that the lanes end together. Less so where the application does not
  // wait, as each frame costs it processor time.
  std::uint64_t frame_bytes(std::uint64_t rest, std::uint64_t most) const MPLITE_SIGNAL_SAFE {
    const std::uint64_t share = rest / ((waits() ? 2u : 1u) * static_cast<unsigned>(used_));
    return std::min(most, std::max(share, kFrameLeastBytes));
  }

  // While several lanes are in use the kernel holds so much of each that has not been sent: what it
  // holds cannot go over another lane any more, so little makes lanes end together, and much costs
  // fewer signals.
  int unsent_bytes() const MPLITE_SIGNAL_SAFE {
    return waits() ? kUnsentBytes : kUnsentBackgroundBytes;
  }
  // The kernel takes more of a lane, while nobody waits for that (`background`) or the application
  // does. True: unsent_bytes() is another one now.
  bool took(bool background) MPLITE_SIGNAL_SAFE {
    const int before = unsent_bytes();
    waited_ = background ? 0 : std::min(waited_ + 1, kWaited);
    return unsent_bytes() != before;
  }

  // While data waits for the network. `up`: lanes that are up, of which the first ones have a
  // sample each; `write_ns`: spent in writing, in all.
  void look(std::int64_t now, const LaneSample (&lanes)[kMost], int up,
            std::int64_t write_ns) MPLITE_SIGNAL_SAFE {
    if (stage_ == Stage::kOpening) {
      if (up >= wanted_)
        begin_trial(lanes, write_ns);
      else if (now - opening_ns_ > kOpenNs)
        end_trial(now, false);
      return;
    }
    if (!begun_) return begin_window(lanes, write_ns);
    Window w;
    for (int i = 0; i < std::min(up, used_); ++i) {
      const LaneSample &then = from_[i], &lane = lanes[i];
      if (lane.acknowledged < then.acknowledged)
        return begin_window(lanes, write_ns);  // it is another connection
      w.bytes += lane.acknowledged - then.acknowledged;
      w.busy_ns = std::max(w.busy_ns, lane.busy_ns - then.busy_ns);
      w.full_ns = std::max(w.full_ns, lane.window_ns - then.window_ns);
    }
    if (w.busy_ns < kWindowNs || w.bytes < kWindowBytes) return;
    w.write_ns = write_ns - write_from_ns_;
    begin_window(lanes, write_ns);
    judge(now, w);
  }

 private:
  enum class Stage : std::uint8_t { kWatching, kOpening, kSettling, kTrying };
  struct Window {
    std::uint64_t bytes = 0;
    std::int64_t busy_ns = 0, full_ns = 0, write_ns = 0;
    double rate() const { return static_cast<double>(bytes) / static_cast<double>(busy_ns); }
    // Neither the sender's processor nor the receiver is what it waits for.
    bool by_network() const { return write_ns < busy_ns / 4 && full_ns < busy_ns / 4; }
  };

  bool waits() const MPLITE_SIGNAL_SAFE { return waited_ == kWaited; }

  void begin_window(const LaneSample (&lanes)[kMost], std::int64_t write_ns) {
    std::copy(lanes, lanes + kMost, from_);
    write_from_ns_ = write_ns;
    begun_ = true;
  }
  void begin_trial(const LaneSample (&lanes)[kMost], std::int64_t write_ns) {
    before_ = used_;
    used_ = wanted_;
    stage_ = Stage::kSettling;
    begin_window(lanes, write_ns);
  }
  void end_trial(std::int64_t now, bool pays) {
    stage_ = Stage::kWatching;
    if (pays) {
      ++paid_;
      sure_ = 1;
      rate_ = best_;
      again_ns_ = kAgainNs;
      return;
    }
    sure_ = 0;
    rate_ = 0;
    if (used_ == wanted_) used_ = before_;
    wanted_ = used_;
    not_before_ns_ = now + again_ns_;
    again_ns_ = std::min(2 * again_ns_, kAgainMostNs);
  }
  void judge(std::int64_t now, const Window& w) {
    if (stage_ == Stage::kSettling) {
      stage_ = Stage::kTrying;
      best_ = 0;
      tried_ = 0;
    } else if (stage_ == Stage::kTrying) {
      best_ = std::max(best_, w.rate());
      if (best_ >= kPaysClearly * rate_ || ++tried_ == kTrialWindows)
        end_trial(now, best_ >= kPays * rate_);
    } else if (!w.by_network()) {
      sure_ = 0;
      rate_ = 0;
    } else {
      rate_ = std::max(rate_, w.rate());
      if (++sure_ < kSureWindows || used_ == kMost || now < not_before_ns_) return;
      wanted_ = std::min(2 * used_, kMost);
      opening_ns_ = now;
      stage_ = Stage::kOpening;
    }
  }

  int waited_ = 0;
  bool tries_ = false, begun_ = false;
  Stage stage_ = Stage::kWatching;
  int used_ = 1, wanted_ = 1, before_ = 1;
  int sure_ = 0;     // windows in a row in which the network was the bound,
  double rate_ = 0;  // and the highest rate in them, bytes per nanosecond
  unsigned paid_ = 0;
  int tried_ = 0;    // windows of the trial,
  double best_ = 0;  // and the highest rate in them
  LaneSample from_[kMost] = {};
  std::int64_t write_from_ns_ = 0;
  std::int64_t opening_ns_ = 0, not_before_ns_ = 0, again_ns_ = kAgainNs;
};

}  // namespace mplite
