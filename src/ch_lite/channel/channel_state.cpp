// Which engine and which operations the channel works on.
#include "ch_lite/channel/channel_state.h"

#include "ch_lite/channel/channel.h"
#include "mplite/engine/engine.h"

namespace mplite {

ChannelState* g_channel = nullptr;

void channel_bind(ChannelState* state) { g_channel = state; }
ChannelState* channel_bound() { return g_channel; }
Gate& channel_gate() { return g_channel->engine->gate(); }
Counters& channel_counters() { return g_channel->engine->counters(); }

}  // namespace mplite
