// The channel interface's control packets: passed through, or kept while somebody without a
// progress function waits for what stands behind them.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ch_lite/channel/channel.h"
#include "ch_lite/channel/channel_ops.h"
#include "mplite/runtime/wait_loop.h"

namespace mplite {
namespace {

using namespace channel;

constexpr std::uint64_t kStashBytesMax = 64u << 20;

// Control packets overtake bulk on the stream, so the piece that a caller waits for may stand
// behind packets that only the caller could take. A caller with a progress function takes them
// there; for one without, they are kept here in order. At the bound the peer is held up.
void stash_control() {
  ChannelState& s = *g_channel;
  while (s.stash_bytes < kStashBytesMax && engine().control_ready()) {
    auto* kept =
        static_cast<StashedControl*>(std::malloc(sizeof(StashedControl) + kControlBytesMax));
    if (kept == nullptr) return;  // it stays where it is
    kept->length = engine().take_control(kept + 1, kControlBytesMax, kept->from);
    if (auto* fitted =
            static_cast<StashedControl*>(std::realloc(kept, sizeof(StashedControl) + kept->length));
        fitted != nullptr)
      kept = fitted;
    kept->next = nullptr;
    (s.stash_tail != nullptr ? s.stash_tail->next : s.stash_head) = kept;
    s.stash_tail = kept;
    s.stash_bytes += kept->length;
  }
}

// Only who waits without a progress function fills the stash, and nobody with a handler does.
MPLITE_ORDINARY int take_stashed(void* packet, int size, int* from) {
  StashedControl* kept = g_channel->stash_head;
  g_channel->stash_head = kept->next;
  if (kept->next == nullptr) g_channel->stash_tail = nullptr;
  g_channel->stash_bytes -= kept->length;
  const std::uint32_t length = kept->length;
  std::memcpy(packet, kept + 1, std::min(length, static_cast<std::uint32_t>(size)));
  *from = kept->from;
  std::free(kept);
  return static_cast<int>(length);
}

// Not by poll_and_serve: the progress function would take the packet that is waited for.
MPLITE_ORDINARY void wait_for_control() {
  WaitLoop waiting;
  waiting.run(engine(), g_channel->wait_policy, [] {
    engine().poll();
    if (engine().control_ready()) return WaitLoop::done();
    engine().refill();
    return WaitLoop::rest(engine().net().now_ns());
  });
}

}  // namespace

namespace channel {

void poll_and_serve() {
  ChannelState& s = *g_channel;
  engine().refill();
  if (s.progress != nullptr) return s.progress(s.progress_arg);
  engine().poll();
  stash_control();
}

void drop_stash(ChannelState& state) {
  while (state.stash_head != nullptr) {
    StashedControl* next = state.stash_head->next;
    std::free(state.stash_head);
    state.stash_head = next;
  }
}

}  // namespace channel
}  // namespace mplite

using namespace mplite;
using namespace mplite::channel;

int MPID_ControlMsgAvail(void) {
  Hold hold(engine().gate());
  if (g_channel->stash_head != nullptr || engine().control_ready()) return 1;
  engine().poll();
  return engine().control_ready() ? 1 : 0;
}

int MPID_ControlMsgMore(void) {
  engine().spend_packet();
  if (g_channel->stash_head != nullptr || engine().control_ready()) return 1;
  return engine().exhaustive() && engine().may_look_again() ? MPID_ControlMsgAvail() : 0;
}

void MPID_ChannelMove(void) { engine().poll(); }

int MPID_RecvAnyControl(void* pkt, int size, int* from) {
  Hold hold(engine().gate());
  if (g_channel->stash_head != nullptr) return take_stashed(pkt, size, from);
  if (!engine().control_ready()) wait_for_control();
  return static_cast<int>(engine().take_control(pkt, static_cast<std::uint32_t>(size), *from));
}

int MPID_ViewAnyControl(const void** pkt, void* spare, int* from) {
  if (g_channel->stash_head != nullptr || !engine().control_ready()) {
    *pkt = spare;
    return MPID_RecvAnyControl(spare, MPID_CONTROL_BYTES_MAX, from);
  }
  const std::uint8_t* packet = nullptr;
  const std::uint32_t length = engine().view_control(&packet, *from);
  *pkt = packet;
  return static_cast<int>(length);
}

int MPID_NextControl(const void** pkt, void* spare, int* from, int* more) {
  *more = 1;
  if (g_channel->stash_head != nullptr) [[unlikely]] {
    *pkt = spare;
    return take_stashed(spare, MPID_CONTROL_BYTES_MAX, from);
  }
  const std::uint8_t* packet = nullptr;
  bool alone = false;
  const std::uint32_t length = engine().next_control(&packet, *from, alone);
  *more = alone ? 0 : 1;
  *pkt = packet;
  return static_cast<int>(length);
}

int MPID_SendControl(const void* pkt, int size, int dest) {
  Hold hold(engine().gate());
  const iovec part = {const_cast<void*>(pkt), static_cast<std::size_t>(size)};
  return engine().send_control(dest, &part, 1);
}

int MPID_SendControlData(const void* pkt, int size, const void* data, int bytes, int dest) {
  Hold hold(engine().gate());
  const iovec parts[2] = {{const_cast<void*>(pkt), static_cast<std::size_t>(size)},
                          {const_cast<void*>(data), static_cast<std::size_t>(bytes)}};
  return engine().send_control(dest, parts, bytes > 0 ? 2 : 1);
}

static_assert(MPID_CONTROL_BYTES_MAX == kControlBytesMax &&
              MPID_CONTROL_HEAD == kFrameHeaderBytes && MPID_CONTROL_FLAT == Engine::kFlatBytes);

int MPID_SendControlInPlace(void* pkt, int size, const void* data, int bytes, int dest) {
  return engine().send_control_in_place(dest, static_cast<std::uint8_t*>(pkt),
                                        static_cast<std::uint32_t>(size), data,
                                        static_cast<std::uint32_t>(bytes));
}
