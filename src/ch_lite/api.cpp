// The C API of ch_lite.h: checks arguments, enters the gate, calls the device. What starts and ends
// everything is in boot.cpp.
#include <cerrno>
#include <climits>

#include "ch_lite/device/device.h"
#include "mplite/engine/gate.h"

using ch_lite::Device;
using ch_lite::device_current;
using ch_lite::host_settings;
using ch_lite::MatchKey;
using mplite::Memory;
using mplite::Pace;

__thread lite_call_state lite_call = {0, 0, 0, 0, nullptr};

namespace {

// The gate, and one piece of work on the device. At the end, in this order: what was put off is
// done, the stock is topped up, the gate opens.
class Entry {
 public:
  explicit Entry(Device& device = *device_current) : hold_(device.gate()), scope_(device) {}

 private:
  struct TopUp {
    ~TopUp() { device_current->top_up(); }
  };
  mplite::Hold hold_;
  TopUp top_up_;
  Device::Scope scope_;
};

// Unless it is a thread of ours that calls: the application is still away.
[[gnu::noinline, gnu::cold]] void back() {
  const ch_lite::DeviceHooks& hooks = device_current->options().hooks;
  if (hooks.nobody_listens != nullptr && hooks.nobody_listens(hooks.arg)) return;
  LITE_HOT_SET(away, 0);
  if (hooks.came_back != nullptr) hooks.came_back(hooks.arg);
}

inline void came_to_look(int call) {
  LITE_HOT_SET(last_call, call);
  LITE_HOT_SET(only_sends, 0);
  if (LITE_HOT_GET(away) != 0) [[unlikely]]
    back();
}

[[gnu::always_inline]] inline void came_for(int call) {
  LITE_HOT_SET(calls, LITE_HOT_GET(calls) + 1);
  LITE_HOT_SET(started, 1);
  came_to_look(call);
}

[[gnu::noinline, gnu::cold]] int bad_argument(int peer, const char* what) {
  const ch_lite::DeviceHooks& hooks = device_current->options().hooks;
  if (hooks.report != nullptr) hooks.report(hooks.arg, LITE_ERR_ARG, peer, EINVAL, what);
  return LITE_ERR_ARG;
}

bool pieces_hold(const iovec* pieces, std::size_t count, std::size_t bytes) {
  for (std::size_t i = 0; i < count; ++i) {
    if (pieces[i].iov_len >= bytes) return true;
    bytes -= pieces[i].iov_len;
  }
  return bytes == 0;
}

MatchKey key_of(const lite_envelope* envelope) {
  return {envelope->context, envelope->source, envelope->tag};
}

bool is_peer(int peer) { return peer >= 0 && peer < device_current->peers(); }
bool is_source(int peer) { return peer == -1 || is_peer(peer); }

// Within an Entry.
void flush_gathered() {
  LITE_HOT_SET(gathered, LITE_GATHERED_NONE);
  MPID_ChannelFlush();
}

// Null: nothing.
const char* wrong_with_send(size_t bytes, int peer, const lite_envelope* envelope) {
  if (!is_peer(peer)) return "lite_isend: no such peer";
  if (envelope->source == LITE_ANY_SOURCE || envelope->tag == LITE_ANY_TAG)
    return "lite_isend: a wildcard in the envelope of a send";
  if (bytes > ch_lite::kMessageBytesMax) return "lite_isend: too long";
  return nullptr;
}

const char* wrong_with_am(int peer, std::size_t header_bytes, std::uint64_t data_bytes) {
  if (!is_peer(peer)) return "lite_am_isend: no such peer";
  if (header_bytes > LITE_AM_HEADER_MAX)
    return "lite_am_isend: header longer than LITE_AM_HEADER_MAX";
  if (data_bytes > ch_lite::kMessageBytesMax - LITE_AM_HEADER_MAX) return "lite_am_isend: too long";
  return nullptr;
}

// How often gathered messages have left late so far. Without the gate, beside a handler in another
// thread: the word is read whole.
[[gnu::no_sanitize_thread]] inline std::uint64_t late_so_far(const Device& device) {
  return device.counters().gathered_late;
}

// Whether what this thread sends may wait for company.
bool may_gather(const Device& device) {
  const ch_lite::DeviceHooks& hooks = device.options().hooks;
  return device.may_gather() && hooks.may_gather != nullptr && hooks.may_gather(hooks.arg);
}

// Bytes of what may wait. Longer data leaves with its envelope, at once and by the shortest way;
// but in a stream of messages of more than kAtOnceMax it is better queued
// (docs/measurements/collectives.md).
constexpr std::size_t kGatherMax = 4096, kAtOnceMax = 64 * 1024;

// The application comes to send. True: the message may wait for company.
inline bool came_to_send(Device& device, int peer, std::size_t bytes) {
  bool gather = false;
  if (device.streak().send(peer, LITE_HOT_GET(only_sends) != 0, late_so_far(device))) [[unlikely]]
    gather = (bytes <= kGatherMax || bytes > kAtOnceMax) && may_gather(device);
  came_for(LITE_CALL_SEND);
  LITE_HOT_SET(only_sends, 1);
  return gather;
}

// The same of a put, a get or an accumulate. With LITE_MORE_FOLLOWS it has company soon, whatever
// came before it. A long one begins at once: its data moves while the application computes.
bool came_to_access(Device& device, int peer, std::size_t bytes, unsigned flags) {
  const bool alone = LITE_HOT_GET(only_sends) == 0;
  came_for(LITE_CALL_OTHER);
  if (bytes > kGatherMax) return false;
  LITE_HOT_SET(only_sends, 1);
  const std::uint64_t late = late_so_far(device);
  const bool gather = (flags & LITE_MORE_FOLLOWS) != 0 ? device.streak().with_company(late)
                                                       : device.streak().send(peer, !alone, late);
  return gather && may_gather(device);
}

bool gathered_in_company = false;  // what waits, if anything does

// Within an Entry, around a send: what is gathered stays in front of it.
[[gnu::noinline]] void begin_gathering(bool gather, int unguarded) {
  if (gather)
    MPID_ChannelGather(unguarded == LITE_GATHERED_IN_COMPANY ? MPID_GATHER_PAGES
                                                             : MPID_GATHER_SMALL);
  else
    flush_gathered();
}
[[gnu::noinline]] void end_gathering(int unguarded) {
  MPID_ChannelGather(MPID_GATHER_NOTHING);
  const int waiting = MPID_ChannelGathered();
  // One: these are others than before, as they are if none has waited (a put that leaves may take
  // others along).
  if (waiting <= 1 || LITE_HOT_GET(gathered) == LITE_GATHERED_NONE ||
      (unguarded == LITE_GATHERED_UNGUARDED && gathered_in_company)) {
    LITE_HOT_SET(gathered, waiting == 0 ? LITE_GATHERED_NONE : unguarded);
    gathered_in_company = unguarded == LITE_GATHERED_IN_COMPANY;
  }
}
template <typename Send>
inline int send_in_order(bool gather, Send send, int unguarded = LITE_GATHERED_UNGUARDED) {
  if (gather || LITE_HOT_GET(gathered) != LITE_GATHERED_NONE) [[unlikely]]
    begin_gathering(gather, unguarded);
  const int result = send();
  if (gather) [[unlikely]]
    end_gathering(unguarded);
  return result;
}

int send_from(const Memory& memory, size_t bytes, int peer, const lite_envelope* envelope,
              unsigned flags, void* cookie, lite_request** request) {
  if (const char* what = wrong_with_send(bytes, peer, envelope)) return bad_argument(peer, what);
  Device& device = *device_current;
  if (request == nullptr &&
      ((flags & LITE_SEND_SYNC) != 0 || !device.may_leave_at_once(bytes, peer)))
    return LITE_PENDING;
  const bool gather = came_to_send(device, peer, bytes);
  Entry entry(device);
  return send_in_order(gather, [&] {
    return device.isend(memory, bytes, peer, key_of(envelope), (flags & LITE_SEND_SYNC) != 0,
                        cookie, request);
  });
}

// The way of most messages: send_from() without request, of what lies in one piece.
int send_at_once(const void* data, size_t bytes, int peer, const lite_envelope* envelope) {
  Device& device = *device_current;
  if (const char* what = wrong_with_send(bytes, peer, envelope)) [[unlikely]]
    return bad_argument(peer, what);
  if (!device.may_leave_at_once(bytes, peer)) return LITE_PENDING;
  const bool gather = came_to_send(device, peer, bytes);
  Entry entry(device);
  return send_in_order(gather,
                       [&] { return device.send_plain(data, bytes, peer, key_of(envelope)); });
}

[[gnu::noinline]] void take_over_completed(Device& device) {
  Entry entry;
  device.hand_over();
}

// Nothing of it is to be taken by the host's progress in the helper thread, which cannot return it
// to anybody.
[[gnu::noinline, gnu::cold]] int tell_trouble(Device& device) {
  const ch_lite::DeviceHooks& hooks = device.options().hooks;
  if (hooks.nobody_listens != nullptr && hooks.nobody_listens(hooks.arg)) return LITE_OK;
  Entry entry(device);
  return device.take_trouble();
}

[[gnu::noinline]] void report_lost(Device& device, int peer) {
  Entry entry;
  device.report(LITE_ERR_PEER_LOST, peer);
}

inline lite_request* next_completed(Device& device) {
  if (device.handed_over() == 0) {
    if (device.completions() == 0) return nullptr;
    take_over_completed(device);
  }
  lite_request* const request = device.next_completion();
  if (request != nullptr && request->status.error == LITE_ERR_PEER_LOST)
    report_lost(device, request->status.peer);
  return request;
}

// A poll has found nothing, and will not rest. Once in a call: that may be one of many polls
// (MPI_Testsome). Gate free.
inline void went_without(const Device& device) {
  if ((lite_call.kinds & 3) != LITE_MAY_NOT_BLOCK) return;
  if (LITE_HOT_GET(polls_since_exit) <= 1) ch_lite::note_return(lite_call);
  if (lite_call.idle_polls++ != 0) return;
  const ch_lite::DeviceHooks& hooks = device.options().hooks;
  if (hooks.give_way != nullptr) hooks.give_way(hooks.arg);
}

int probe(int peer, const lite_envelope* envelope, lite_status* status, lite_message** message) {
  Device& device = *device_current;
  came_to_look(LITE_CALL_OTHER);
  int found;
  {
    Entry entry(device);
    found = device.probe(peer, key_of(envelope), status, message);
  }
  if (found == 0) went_without(device);
  return found;
}

// Active messages that still wait for credit at the end are given this long without any news.
constexpr int kFlushQuietLimitMs = 2000;

}  // namespace

extern "C" {

void lite_set_tag_ignore_bits(uint32_t bits) {
  host_settings.tag_ignore_bits = bits;
  if (device_current == nullptr) return;
  Entry entry;
  device_current->set_tag_ignore_bits(bits);
}

void lite_set_member_callback(lite_member_callback callback) {
  host_settings.member_callback = callback;
  if (device_current == nullptr) return;
  Entry entry;
  device_current->set_member_callback(callback);
}

void lite_members_changed(void) {
  if (device_current == nullptr) return;
  Entry entry;
  device_current->forget_permits();
}

void lite_set_context_name(lite_context_name name) {
  host_settings.context_name = name;
  if (device_current == nullptr) return;
  Entry entry;
  device_current->set_context_name(name);
}

void lite_am_set_check(lite_am_check check) {
  host_settings.am_check = check;
  if (device_current == nullptr) return;
  Entry entry;
  device_current->set_am_check(check);
}

void lite_am_set_callback(lite_am_callback callback, void* arg) {
  host_settings.am_callback = callback;
  host_settings.am_callback_arg = arg;
  if (device_current == nullptr) return;
  Entry entry;
  device_current->set_am_callback(callback, arg);
}

int lite_isend(const void* buffer, size_t bytes, int peer, const lite_envelope* envelope,
               unsigned flags, void* cookie, lite_request** request) {
  if (request == nullptr && flags == 0) [[likely]]
    return send_at_once(buffer, bytes, peer, envelope);
  return send_from(buffer, bytes, peer, envelope, flags, cookie, request);
}

int lite_isendv(const struct iovec* pieces, size_t count, size_t bytes, int peer,
                const lite_envelope* envelope, unsigned flags, void* cookie,
                lite_request** request) {
  if (!pieces_hold(pieces, count, bytes))
    return bad_argument(peer, "lite_isendv: the pieces are shorter than the message");
  return send_from(Memory::in_pieces(pieces), bytes, peer, envelope, flags, cookie, request);
}

int lite_irecv(void* buffer, size_t bytes, int peer, const lite_envelope* envelope, void* cookie,
               lite_status* status, lite_request** request) {
  if (!is_source(peer)) return bad_argument(peer, "lite_irecv: no such peer");
  came_for(LITE_CALL_RECEIVE);
  Entry entry;
  return device_current->irecv(buffer, bytes, peer, key_of(envelope), cookie, status, request);
}

int lite_irecvv(const struct iovec* pieces, size_t count, size_t bytes, int peer,
                const lite_envelope* envelope, void* cookie, lite_status* status,
                lite_request** request) {
  if (!is_source(peer)) return bad_argument(peer, "lite_irecv: no such peer");
  if (!pieces_hold(pieces, count, bytes))
    return bad_argument(peer, "lite_irecvv: the pieces are shorter than the receive");
  came_for(LITE_CALL_RECEIVE);
  Entry entry;
  return device_current->irecv(Memory::in_pieces(pieces), bytes, peer, key_of(envelope), cookie,
                               status, request);
}

// The application leaves by another call than a send, or by a send that nobody watches over.
static void let_gathered_go() {
  Entry entry;
  flush_gathered();
}

static void leave() {
  const ch_lite::DeviceHooks& hooks = device_current->options().hooks;
  if (LITE_HOT_GET(want_arm) != 0 && hooks.leave != nullptr) hooks.leave(hooks.arg);
}

void lite_host_exit_slow(void) {
  if (device_current == nullptr) return;
  if (LITE_HOT_GET(gathered) != LITE_GATHERED_NONE) let_gathered_go();
  leave();
}

void lite_host_exit_sending_slow(void) {
  if (device_current == nullptr) return;
  if (const int gathered = LITE_HOT_GET(gathered); gathered >= LITE_GATHERED_UNGUARDED) {
    const ch_lite::DeviceHooks& hooks = device_current->options().hooks;
    // kNone: it is another thread's that may not gather, or nobody gets the timer's signal.
    const ch_lite::Guard guard = may_gather(*device_current) && hooks.guard != nullptr
                                     ? hooks.guard(hooks.arg, gathered == LITE_GATHERED_IN_COMPANY)
                                     : ch_lite::Guard::kNone;
    if (guard == ch_lite::Guard::kNone) let_gathered_go();
    if (guard == ch_lite::Guard::kUntilItLeaves) LITE_HOT_SET(gathered, LITE_GATHERED_GUARDED);
  }
  leave();
}

int lite_cancel_recv(lite_request* request) {
  Entry entry;
  return device_current->cancel_receive(request);
}

int lite_iprobe(int peer, const lite_envelope* envelope, lite_status* status) {
  if (!is_source(peer)) return bad_argument(peer, "lite_iprobe: no such peer");
  return probe(peer, envelope, status, nullptr);
}

int lite_improbe(int peer, const lite_envelope* envelope, lite_status* status,
                 lite_message** message) {
  if (!is_source(peer)) return bad_argument(peer, "lite_improbe: no such peer");
  return probe(peer, envelope, status, message);
}

int lite_imrecv(lite_message* message, void* buffer, size_t bytes, void* cookie,
                lite_status* status, lite_request** request) {
  came_for(LITE_CALL_OTHER);
  Entry entry;
  return device_current->receive_detached(message, buffer, bytes, cookie, status, request);
}

int lite_imrecvv(lite_message* message, const struct iovec* pieces, size_t count, size_t bytes,
                 void* cookie, lite_status* status, lite_request** request) {
  if (!pieces_hold(pieces, count, bytes))
    return bad_argument(-1, "lite_imrecvv: the pieces are shorter than the receive");
  came_for(LITE_CALL_OTHER);
  Entry entry;
  return device_current->receive_detached(message, Memory::in_pieces(pieces), bytes, cookie, status,
                                          request);
}

int lite_progress(void) {
  if (device_current == nullptr) [[unlikely]]
    return 0;
  Device& device = *device_current;
  // A wait that never sleeps comes to the end of an int within the hour.
  const int polls = LITE_HOT_GET(polls_since_exit);
  LITE_HOT_SET(polls_since_exit, polls + (polls != INT_MAX ? 1 : 0));
  came_to_look(LITE_CALL_PROGRESS);
  const std::uint64_t before = device.events();
  Pace& pace = device.pace();
  const bool look = pace.look(LITE_HOT_GET(polls_since_exit), LITE_HOT_GET(skip), before,
                              device.is_outstanding());
  LITE_HOT_SET(skip, pace.skip());
  if (!look && device.completions() == 0 && device.active_messages() == 0) {
    went_without(device);
    return 0;
  }
  {
    mplite::Hold hold(device.gate());
    const bool everywhere = pace.seldom() && device.options().hooks.look_everywhere != nullptr;
    if (everywhere) device.options().hooks.look_everywhere(device.options().hooks.arg, true);
    device.look_before_delivery();
    if (everywhere) device.options().hooks.look_everywhere(device.options().hooks.arg, false);
    device.hand_over();
  }
  if (device.active_messages() != 0) device.deliver_active_messages();
  if (device.trouble() != LITE_OK) [[unlikely]] {
    const int trouble = tell_trouble(device);
    if (trouble != LITE_OK) return trouble;
  }
  const bool empty = device.completions() == 0 && device.events() == before;
  if (!empty) {
    ch_lite::note_news(lite_call);
    return static_cast<int>(device.completions());
  }
  const ch_lite::DeviceHooks& hooks = device.options().hooks;
  // A lone MPI_Test never sleeps: a wait is the second poll since the application was outside, or
  // the first one of a call that has started something (MPI_Recv). Several polls need not be a
  // wait: that is the call's kind.
  if (LITE_HOT_GET(polls_since_exit) <= 1 && LITE_HOT_GET(started) == 0)
    went_without(device);
  else if (hooks.idle != nullptr)
    hooks.idle(hooks.arg, ch_lite::may_rest(lite_call));
  return 0;
}

lite_request* lite_next_completion(void) { return next_completed(*device_current); }

int lite_take_completion(lite_completion* done) {
  Device& device = *device_current;
  lite_request* const request = next_completed(device);
  if (request == nullptr) return 0;
  done->cookie = request->cookie;
  done->status = request->status;
  done->is_send = lite_request_is_send(request);
  done->holds_buffer = lite_request_holds_buffer(request);
  done->in_order = lite_request_is_in_order(request);
  device.free_request(request);
  return 1 + static_cast<int>(device.completions());
}

int lite_expose(void* base, size_t bytes, uint64_t* key) {
  Entry entry;
  return device_current->expose(base, bytes, nullptr, 0, key);
}

int lite_expose_to(void* base, size_t bytes, const int* peers, size_t count, uint64_t* key) {
  for (size_t i = 0; i < count; ++i)
    if (!is_peer(peers[i])) return bad_argument(peers[i], "lite_expose_to: no such peer");
  Entry entry;
  return device_current->expose(base, bytes, peers, count, key);
}

int lite_is_accessed(uint64_t key) {
  Entry entry;
  return device_current->is_accessed(key) ? 1 : 0;
}

int lite_withdraw(uint64_t key) {
  Entry entry;
  return device_current->withdraw(key);
}

int lite_put(int peer, uint64_t key, uint64_t offset, const void* data, size_t bytes,
             unsigned flags, void* cookie, lite_request** request) {
  if (!is_peer(peer)) return bad_argument(peer, "lite_put: no such peer");
  if (key == 0 || bytes > ch_lite::kMessageBytesMax)
    return bad_argument(peer, "lite_put: no key, or too long");
  Device& device = *device_current;
  const bool gather = came_to_access(device, peer, bytes, flags);
  Entry entry(device);
  return send_in_order(
      gather,
      [&] {
        return device.put(peer, key, offset, data, bytes, (flags & LITE_PUT_UNANSWERED) == 0,
                          cookie, request);
      },
      (flags & LITE_MORE_FOLLOWS) != 0 ? LITE_GATHERED_IN_COMPANY : LITE_GATHERED_UNGUARDED);
}

int lite_get(int peer, uint64_t key, uint64_t offset, void* buffer, size_t bytes, unsigned flags,
             void* cookie, lite_request** request) {
  if (!is_peer(peer)) return bad_argument(peer, "lite_get: no such peer");
  if (key == 0 || bytes > ch_lite::kMessageBytesMax)
    return bad_argument(peer, "lite_get: no key, or too long");
  Device& device = *device_current;
  bool gather = false;
  if ((flags & LITE_MORE_FOLLOWS) != 0)
    gather = came_to_access(device, peer, bytes, flags);
  else
    came_for(LITE_CALL_OTHER);
  Entry entry(device);
  return send_in_order(
      gather, [&] { return device.get(peer, key, offset, buffer, bytes, cookie, request); },
      LITE_GATHERED_IN_COMPANY);
}

int lite_request_holds_buffer(const lite_request* request) {
  return request->memory.buffer != nullptr || request->memory.pieces != nullptr;
}

int lite_request_is_in_order(const lite_request* request) {
  return request->in_order || request->kind == ch_lite::RequestKind::kAmSend;
}

void* lite_request_cookie(const lite_request* request) { return request->cookie; }
void lite_request_status(const lite_request* request, lite_status* status) {
  *status = request->status;
}
int lite_request_is_send(const lite_request* request) {
  return request->kind != ch_lite::RequestKind::kReceive;
}

void lite_request_free(lite_request* request) { device_current->free_request(request); }

int lite_am_isend(int peer, uint32_t handler, const void* header, size_t header_bytes,
                  const void* data, size_t data_bytes, void* cookie, lite_request** request) {
  if (const char* what = wrong_with_am(peer, header_bytes, data_bytes))
    return bad_argument(peer, what);
  came_for(LITE_CALL_SEND);
  Device& device = *device_current;
  Entry entry(device);
  const int result = device.am_isend(peer, handler, header, static_cast<uint32_t>(header_bytes),
                                     data, data_bytes, cookie, request);
  if (LITE_HOT_GET(gathered) != LITE_GATHERED_NONE && MPID_ChannelGathered() == 0)
    LITE_HOT_SET(gathered, LITE_GATHERED_NONE);  // they have left with it
  return result;
}

int lite_am_isend_more(int peer, uint32_t handler, const void* header, size_t header_bytes,
                       const void* data, size_t data_bytes, void* cookie, lite_request** request) {
  if (const char* what = wrong_with_am(peer, header_bytes, data_bytes))
    return bad_argument(peer, what);
  Device& device = *device_current;
  const bool gather = came_to_access(device, peer, data_bytes, LITE_MORE_FOLLOWS);
  Entry entry(device);
  return send_in_order(
      gather,
      [&] {
        return device.am_isend(peer, handler, header, static_cast<uint32_t>(header_bytes), data,
                               data_bytes, cookie, request);
      },
      LITE_GATHERED_IN_COMPANY);
}

int lite_am_waits(int peer) {
  if (!is_peer(peer)) return 0;
  Entry entry;
  return device_current->active_message_waits(peer) ? 1 : 0;
}

int lite_lost_peers(void) {
  Entry entry;
  return device_current->lost_peers();
}

int lite_check_lost(int peer) {
  if (!is_peer(peer)) return bad_argument(peer, "lite_check_lost: no such peer");
  Entry entry;
  return device_current->check_lost(peer);
}

// Active messages of ours may wait for credit that a peer returns while it is in its own flush:
// deliver here, too. A peer that is gone from MPI already does not return it: the limit ends that
// wait, as nobody would have handled the message.
int lite_flush(void) {
  if (device_current == nullptr) return LITE_OK;
  Device& device = *device_current;
  int quiet_ms = 0;
  for (;;) {
    const std::uint64_t before = device.events();
    {
      mplite::Hold hold(device.gate());
      device.progress();
    }
    device.deliver_active_messages();
    if (device.trouble() != LITE_OK) return tell_trouble(device);
    const bool unsent = device.active_messages_unsent() != 0 && quiet_ms < kFlushQuietLimitMs;
    if (MPID_ChannelQueued() == 0 && !unsent) return LITE_OK;
    quiet_ms = device.events() == before ? quiet_ms + 1 : 0;
    MPID_ChannelWait(1000000);
  }
}

}  // extern "C"
