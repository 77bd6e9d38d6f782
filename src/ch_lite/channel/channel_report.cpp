// The channel's words for people about a connection: its state, what is queued, what the kernel
// knows. For reports of who waits.
#include "ch_lite/channel/channel.h"
#include "ch_lite/channel/channel_ops.h"
#include "mplite/base/bounded_text.h"
#include "mplite/net/loss.h"

namespace mplite {
namespace {

using ull = unsigned long long;

void add_state(BoundedText& text, const PeerReport& report) {
  switch (report.state) {
    case PeerState::kIdle: return text.add("not connected");
    case PeerState::kMaking:
      text.add("being connected");
      if (report.error != 0) text.add(" (last try: %s)", loss_text(report.error));
      return;
    case PeerState::kUp: return text.add("connected");
    case PeerState::kGone: return text.add("closed");
    case PeerState::kLost: return text.add("lost (%s)", loss_text(report.error));
  }
}

void add_stream(BoundedText& text, const StreamReport& stream) {
  text.add(", round trip %u us", stream.round_trip_us);
  if (stream.delivered_per_s != 0)
    text.add(", delivers %.1f MB/s", static_cast<double>(stream.delivered_per_s) * 1e-6);
  text.add(", %u packets not acknowledged, %u sent again, nothing from there for %.1f s",
           stream.unacknowledged, stream.retransmissions,
           static_cast<double>(stream.since_last_data_ms) * 1e-3);
}

}  // namespace
}  // namespace mplite

using namespace mplite;
using namespace mplite::channel;

const char* MPID_ChannelReport(int peer, char* text, size_t size) {
  const PeerReport report = engine().report(peer);
  char who[Engine::kDescribeBytes];
  BoundedText out(text, size);
  out.add("%s: ", engine().describe(peer, who, sizeof who));
  add_state(out, report);
  out.add(", %llu bytes to send", static_cast<ull>(report.queued_bytes));
  if (report.has_stream) add_stream(out, report.stream);
  return text;
}

int MPID_ChannelUnderway(int peer) {
  const PeerReport report = engine().report(peer);
  if (report.queued_bytes != 0 || report.state == PeerState::kMaking ||
      report.state == PeerState::kLost)
    return 2;
  return report.state == PeerState::kUp ? 1 : 0;
}
