// The channel for a host that brings protocols of its own (MPICH-1's ch2): start and end, waiting,
// what comes while the host waits for something else. Implements channel_host.h over channel.h;
// boot.cpp is its counterpart for hosts of the device.
#include "ch_lite/mpich1/channel_host.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "ch_lite/channel/channel.h"
#include "ch_lite/channel/channel_state.h"
#include "mplite/launch/launched.h"
#include "mplite/runtime/job_runtime.h"
#include "mplite/tuning/eager_cutoff.h"

namespace ch_lite {
namespace {

using namespace mplite;

// Polls in a row, so soon after one another, are a wait: of ch2, which has no other way to wait for
// a transfer, or of an application that tests and tests.
constexpr std::int64_t kStillPollingNs = 10'000;
constexpr int kSpares = 8;  // packets that the handler can keep until the host's next call

constexpr int kEnvelopeMax =
    Engine::kBehindPacketMax;  // bytes; a longer packet leaves before its data

// A send on the channel that is waited for gets a copy when nothing has moved for so long: the
// receiver is busy with something else.
constexpr std::int64_t kKeepAfterNs = 500'000;

enum CallKind {
  kStart,
  kPoll,
  kWait
};  // for Grace: after which the application comes straight back

struct HostRequest {
  HostRequest* pool_next = nullptr;
  std::uint64_t pool_handle = 0;
  std::int64_t result = 0;
  MPID_ChannelId kept_by = 0;  // of a send on the channel, which a copy may end
  bool done = false;
  bool forgotten = false;  // nobody asks any more: given back when done
};

// A packet that came while the host waited for something else, or that the host sent to itself; its
// bytes follow.
struct Kept {
  Kept* next;
  int from;
  int length;
  bool posted;           // its data has been looked after
  HostRequest* receive;  // of its data into `data`
  std::uint8_t* data;
  std::int64_t data_bytes;

  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(this + 1); }
};

template <typename T>
struct Fifo {
  T* head = nullptr;
  T* tail = nullptr;

  void put(T* item) {
    item->next = nullptr;
    (tail != nullptr ? tail->next : head) = item;
    tail = item;
  }
  T* take() {
    T* item = head;
    head = item->next;
    if (head == nullptr) tail = nullptr;
    return item;
  }
};

// Channel data that the host sent to itself; its bytes follow.
struct SelfData {
  SelfData* next;
  std::int64_t size;

  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(this + 1); }
};

struct Host : JobRuntime {
  LiteHostOptions options{};
  ChannelState* channel = nullptr;
  Pool<HostRequest> requests;
  Fifo<Kept> kept;
  Fifo<SelfData> self_data;
  Kept* spares = nullptr;
  int spare_count = 0;
  std::uint64_t kept_bytes = 0;
  Kept* delivered = nullptr;  // the packet that was taken last, if its data was kept too
  int pending = 0;            // operations of the host's that are not complete
  std::uint64_t completed = 0, completed_seen = 0;
  std::int64_t received = 0;
  int awaiting = -1;  // the packet that was taken last is from this peer, and its data comes next
  int held = -1;      // peer for whom an envelope is kept here until its data comes, with the next
                      // call: they leave together
  int envelope_size = 0;
  alignas(16) std::uint8_t envelope[kEnvelopeMax];
  bool away = false;
  volatile int want_arm = 0;
  int lost_peer = -1, lost_error = 0;
  std::int64_t polled_ns = 0;
};
Host* g_host = nullptr;

// What g_last_error says.
[[noreturn]] void end_process() {
  if (g_host != nullptr && g_host->options.fatal != nullptr) g_host->options.fatal(g_last_error);
  std::fflush(stdout);
  std::fprintf(stderr, "ch_lite: %s\n", g_last_error);
  _exit(1);
}

[[noreturn]] void fatal(const char* format, ...) __attribute__((format(printf, 1, 2)));
void fatal(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(g_last_error, sizeof g_last_error, format, arguments);
  va_end(arguments);
  end_process();
}

[[noreturn]] void fatal_peer(int peer, int error) {
  g_host->fail_lost(-1, peer, error);
  end_process();
}

void check(int rc, int peer) {
  if (rc >= 0) return;
  if (rc == -ENOBUFS || rc == -ENOMEM) fatal("rank %d is out of memory", g_host->rank);
  fatal_peer(peer, -rc);
}

MPLITE_ORDINARY Kept* make_kept(std::size_t bytes) {
  auto* kept = static_cast<Kept*>(std::malloc(sizeof(Kept) + bytes));
  if (kept != nullptr) *kept = Kept{};
  return kept;
}

void free_kept(Kept* kept) {
  std::free(kept->data);
  std::free(kept);
}

// ---- what comes while nobody asks for it ----

Kept* new_kept(Host& h) {
  if (h.spares != nullptr) {
    Kept* kept = h.spares;
    h.spares = kept->next;
    --h.spare_count;
    return kept;
  }
  return MPID_ChannelInHandler() != 0 ? nullptr : make_kept(MPID_CONTROL_BYTES_MAX);
}

// The first packet from the engine to the end of the queue. False: there is no room, and its sender
// is held up.
bool keep_packet(Host& h) {
  if (h.kept_bytes >= h.knobs.unexpected_max) return false;
  Kept* kept = new_kept(h);
  if (kept == nullptr) return false;
  kept->length = MPID_RecvAnyControl(kept->bytes(), MPID_CONTROL_BYTES_MAX, &kept->from);
  h.kept_bytes += static_cast<std::uint64_t>(kept->length);
  h.kept.put(kept);
  return true;
}

void on_done(void* arg, std::int64_t result) {
  auto* r = static_cast<HostRequest*>(arg);
  r->done = true;
  r->result = result;
  --g_host->pending;
  ++g_host->completed;
  if (r->forgotten) g_host->requests.give(r);
}

HostRequest* new_request(Host& h) {
  if (h.requests.free_count() == 0 && !h.requests.reserve(1))
    fatal("rank %d is out of memory for its requests", h.rank);
  ++h.pending;
  return h.requests.take();
}

// Buffers for the data behind the packets that are kept, so that nothing waits in the stream for
// the host. In the order of the packets, which is that of the data.
MPLITE_ORDINARY void post_kept(Host& h) {
  if (h.awaiting >= 0) return;  // the first claim is the host's
  for (Kept* kept = h.kept.head; kept != nullptr; kept = kept->next) {
    if (kept->posted) continue;
    const int bytes = kept->from != h.rank ? h.options.data_behind(kept->bytes()) : 0;
    if (bytes > 0) {
      if (h.kept_bytes >= h.knobs.unexpected_max) return;
      kept->data = static_cast<std::uint8_t*>(std::malloc(static_cast<std::size_t>(bytes)));
      if (kept->data == nullptr) return;
      kept->data_bytes = bytes;
      h.kept_bytes += static_cast<std::uint64_t>(bytes);
      kept->receive = new_request(h);
      MPID_ChannelId id = 0;
      check(MPID_IRecvFromChannel(kept->data, static_cast<std::size_t>(bytes), kept->from, &id),
            kept->from);
      MPID_OnComplete(id, on_done, kept->receive);
    }
    kept->posted = true;
  }
}

void tell_outstanding(Host& h) {
  h.controller.set_outstanding(h.pending > 0 || MPID_ChannelQueued() > 0);
}

// Moves everything: from the handler, the helper thread, and from waits, the channel's own among
// them.
void progress(void*) {
  Host& h = *g_host;
  while (MPID_ControlMsgAvail() != 0 && keep_packet(h)) {}
  if (MPID_ChannelInHandler() == 0 && h.kept.head != nullptr) post_kept(h);
  tell_outstanding(h);
}

void lost(void*, int peer, int error) {
  if (g_host->lost_peer >= 0) return;
  g_host->lost_peer = peer;
  g_host->lost_error = error;
}

// ---- a call of the host's, and waiting in it ----

class Call {
 public:
  explicit Call(CallKind kind) : h_(*g_host), kind_(kind) {
    channel_gate().enter();
    if (h_.away) h_.controller.came_back();
    h_.away = false;
    MPID_ChannelRefill();
    if (h_.spare_count < kSpares) refill_spares();
  }
  ~Call() {
    tell_outstanding(h_);
    const bool leave = h_.away = h_.want_arm != 0;
    channel_gate().leave();
    if (leave) h_.controller.leave_library(kind_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Host& host() { return h_; }

 private:
  void refill_spares() {
    while (h_.spare_count < kSpares) {
      Kept* kept = make_kept(MPID_CONTROL_BYTES_MAX);
      if (kept == nullptr) return;
      kept->next = h_.spares;
      h_.spares = kept;
      ++h_.spare_count;
    }
  }

  Host& h_;
  CallKind kind_;
};

// A turn of a wait has found nothing to end it.
WaitLoop::Turn found_nothing(Host& h) {
  const Counters& c = channel_counters();
  const std::int64_t now = h.net.now_ns();
  if (!h.waiting.has_moved(c.frames_in + c.bytes_in + c.bytes_out + c.connections))
    return WaitLoop::rest(now);
  h.waiting.news_at(now);
  return WaitLoop::again();
}

void give_up_if_lost(Host& h) {
  if (h.lost_peer >= 0 && !h.leaving) fatal_peer(h.lost_peer, h.lost_error);
}

// Behind begin_wait(), until `done`, which polls.
template <typename Done>
void wait_polling(Host& h, Done done) {
  h.wait([&h, &done] {
    if (done()) return WaitLoop::done();
    give_up_if_lost(h);
    MPID_ChannelRefill();
    return found_nothing(h);
  });
}

// `peer`: whose news is awaited, or -1.
template <typename Done>
void wait_until(Host& h, int peer, Done done) {
  if (done()) return;
  h.begin_wait();
  wait_polling(h, [&h, peer, &done] {
    if (peer >= 0 && peer != h.rank) MPID_ChannelPrefer(peer);
    progress(nullptr);
    return done();
  });
}

// A poll of the host's found nothing. Many in a row are a wait.
void polled_in_vain(Host& h) {
  give_up_if_lost(h);
  if (h.net.now_ns() - h.polled_ns > kStillPollingNs) {
    h.begin_wait();
  } else if (const auto turn = found_nothing(h); turn.kind == WaitLoop::Turn::kRest) {
    h.controller.enter_wait();  // armed, others would take what ends the sleep
    h.waiting.rest_by(h.policy, *h.engine, turn.now_ns);
  }
  h.polled_ns = h.net.now_ns();
}

void keep_id(int* id, std::uint64_t handle) {
  std::memset(id, 0, 4 * sizeof *id);
  std::memcpy(id, &handle, sizeof handle);
}

HostRequest* request_of(Host& h, const int* id) {
  std::uint64_t handle;
  std::memcpy(&handle, id, sizeof handle);
  return handle == 0 ? nullptr : h.requests.find(handle);
}

void give_back(Host& h, HostRequest* r, int* id) {
  if (r->result < 0 && r->result != -ECANCELED)
    fatal_peer(h.lost_peer >= 0 ? h.lost_peer : h.rank, static_cast<int>(-r->result));
  h.received = r->result;
  h.requests.give(r);
  keep_id(id, 0);
}

// The envelope that is kept, if any, leaves without its data.
void let_go(Host& h) {
  if (h.held < 0) return;
  const int dest = h.held;
  h.held = -1;
  check(MPID_SendControl(h.envelope, h.envelope_size, dest), dest);
}

// A started operation: nothing to wait for, or a request.
HostRequest* follow(Host& h, MPID_ChannelId channel_id, int* id) {
  keep_id(id, 0);
  if (channel_id == 0) return nullptr;
  HostRequest* r = new_request(h);
  keep_id(id, r->pool_handle);
  MPID_OnComplete(channel_id, on_done, r);
  return r;
}

HostRequest* start_send(Host& h, const void* buf, std::int64_t size, int dest, int* id) {
  MPID_ChannelId channel_id = 0;
  const auto bytes = static_cast<std::size_t>(size);
  int rc = h.held == dest
               ? MPID_ISendBehind(h.envelope, h.envelope_size, buf, bytes, dest, &channel_id)
               : -EAGAIN;
  if (rc != -EAGAIN) {
    h.held = -1;
  } else {  // in one system call even so
    MPID_ChannelHold(dest);
    let_go(h);
    rc = MPID_ISendChannel(buf, bytes, dest, &channel_id);
    MPID_ChannelRelease(dest);
  }
  HostRequest* r = follow(h, channel_id, id);
  if (r != nullptr) r->kept_by = channel_id;
  check(rc, dest);
  return r;
}

// Waits for it, or keeps a copy of what it sends; gives the id back.
void finish(Host& h, HostRequest* r, int* id) {
  bool kept = false;
  if (!r->done) h.begin_wait();  // from now on counts what the copy waits for
  wait_until(h, -1, [&] {
    if (!r->done && r->kept_by != 0 && h.waiting.quiet_ns(h.net.now_ns()) >= kKeepAfterNs)
      kept = MPID_KeepChannel(r->kept_by) != 0;
    return r->done || kept;
  });
  if (r->done) return give_back(h, r, id);
  r->forgotten = true;
  keep_id(id, 0);
}

void put_to_self(Host& h, const void* pkt, int size) {
  Kept* kept = make_kept(static_cast<std::size_t>(size));
  if (kept == nullptr) fatal("rank %d is out of memory for a packet to itself", h.rank);
  kept->from = h.rank;
  kept->length = size;
  std::memcpy(kept->bytes(), pkt, static_cast<std::size_t>(size));
  h.kept_bytes += static_cast<std::uint64_t>(size);
  h.kept.put(kept);
}

void send_to_self(Host& h, const void* buf, std::int64_t size) {
  auto* data =
      static_cast<SelfData*>(std::malloc(sizeof(SelfData) + static_cast<std::size_t>(size)));
  if (data == nullptr) fatal("rank %d is out of memory for a message to itself", h.rank);
  data->size = size;
  mplite::copy_bytes(data->bytes(), buf, static_cast<std::size_t>(size));
  h.self_data.put(data);
  ++h.engine->counters().self_msgs;
  h.engine->counters().self_bytes += static_cast<std::uint64_t>(size);
}

// With empty channel messages. What the host has left unreceived is thrown away.
int exchange_empty(Host& h, int to, int from) {
  MPID_ChannelId out = 0;
  if (const int rc = MPID_ISendChannel(nullptr, 0, to, &out); rc < 0) return rc;
  HostRequest* sent = out != 0 ? new_request(h) : nullptr;
  if (sent != nullptr) MPID_OnComplete(out, on_done, sent);
  std::int64_t length = 1;
  while (length > 0) {
    MPID_ChannelId in = 0;
    if (const int rc = MPID_IRecvFromChannel(nullptr, 0, from, &in); rc < 0) return rc;
    HostRequest* r = new_request(h);
    MPID_OnComplete(in, on_done, r);
    wait_until(h, from, [&] { return r->done; });
    length = r->result;
    h.requests.give(r);
  }
  if (sent == nullptr) return 0;
  wait_until(h, to, [&] { return sent->done; });
  h.requests.give(sent);
  return 0;
}

// A peer that is lost meanwhile ends it; the end of the job goes on.
int barrier(Host& h) {
  disseminate(h.rank, h.size, [&h](int, int to, int from) { return exchange_empty(h, to, from); });
  return 0;
}

void free_host() {
  Host* h = g_host;
  if (h == nullptr) return;
  h->end_engine();  // completes what is left, so before what it calls
  channel_bind(nullptr);
  delete h->channel;
  while (h->kept.head != nullptr) free_kept(h->kept.take());
  while (h->self_data.head != nullptr) std::free(h->self_data.take());
  while (h->spares != nullptr) {
    Kept* next = h->spares->next;
    free_kept(h->spares);
    h->spares = next;
  }
  delete h;
  g_host = nullptr;
}

int start(const LiteHostOptions& options, LiteHostJob& job) {
  Host* h = g_host = new (std::nothrow) Host;
  if (h == nullptr) return -1;
  h->options = options;
  Launched launched;
  if (is_launched() && !read_launched(launched, g_last_error, sizeof g_last_error)) return -1;
  if (start_launched(*h, launched, g_last_error, sizeof g_last_error) != StartFault::kNone)
    return -1;
  h->channel = new (std::nothrow) ChannelState(*h->engine);
  if (h->channel == nullptr || h->channel->peers == nullptr)
    return fail(-1, "out of memory for the channels of %d ranks", h->size);
  h->channel->wait_policy = h->policy;
  channel_bind(h->channel);
  MPID_ChannelSetProgress(progress, nullptr);
  MPID_ChannelSetLost(lost, nullptr);
  if (h->start_progress(progress, &h->want_arm, g_last_error, sizeof g_last_error) !=
      StartFault::kNone)
    return -1;
  h->engine->set_outstanding(true);  // each call of the host's is one because it wants to know
  job.rank = h->rank;
  job.size = h->size;
  job.short_max = h->knobs.short_max;
  // MPICH 1 has one cutoff for all peers, and keeps what comes without a receive whatever its
  // length
  job.eager_max = h->knobs.eager_max == kEagerAuto ? kEagerCutoffInTime : h->knobs.eager_max;
  return 0;
}

}  // namespace
}  // namespace ch_lite

using namespace ch_lite;

const char* lite_host_error(void) { return mplite::g_last_error; }

int lite_host_start(const LiteHostOptions* options, LiteHostJob* job) {
  if (g_host != nullptr) return mplite::fail(-1, "lite_host_start was called twice");
  const int rc = start(*options, *job);
  if (rc != 0) free_host();
  return rc;
}

void lite_host_end(void) {
  Host* h = g_host;
  if (h == nullptr) return;
  {
    mplite::Hold hold(channel_gate());
    let_go(*h);
    const auto flush = [h] {
      wait_until(*h, -1, [] { return MPID_ChannelQueued() == 0; });
      return 0;
    };
    h->leave_together(flush, [h] { return barrier(*h); });
  }
  h->end_progress();
  free_host();
}

// ---- control packets ----

int lite_host_control_avail(void) {
  Call call(kPoll);
  Host& h = call.host();
  if (h.kept.head != nullptr || MPID_ControlMsgAvail() != 0) return 1;
  polled_in_vain(h);
  return 0;
}

void lite_host_recv_control(void* pkt, int size, int* from) {
  Call call(kWait);
  Host& h = call.host();
  if (h.delivered != nullptr) {
    free_kept(h.delivered);
    h.delivered = nullptr;
  }
  if (h.kept.head == nullptr && MPID_ControlMsgAvail() == 0) {
    h.begin_wait();
    // A turned-away handler, or the helper thread, may keep it instead.
    wait_polling(h, [&h] { return h.kept.head != nullptr || MPID_ControlMsgAvail() != 0; });
  }
  if (h.kept.head == nullptr) {
    MPID_RecvAnyControl(pkt, size, from);
    if (h.options.data_behind(pkt) > 0) h.awaiting = *from;
    return;
  }
  Kept* kept = h.kept.take();
  std::memcpy(pkt, kept->bytes(), static_cast<std::size_t>(std::min(kept->length, size)));
  *from = kept->from;
  h.kept_bytes -= static_cast<std::uint64_t>(kept->length);
  if (kept->data != nullptr) {
    h.delivered = kept;
    return;
  }
  if (kept->from != h.rank && h.options.data_behind(kept->bytes()) > 0) h.awaiting = kept->from;
  free_kept(kept);
}

void lite_host_send_control(const void* pkt, int size, int dest) {
  Call call(kStart);
  Host& h = call.host();
  if (dest == h.rank) return put_to_self(h, pkt, size);
  let_go(h);
  if (h.options.data_behind(pkt) <= 0 || size > kEnvelopeMax)
    return check(MPID_SendControl(pkt, size, dest), dest);
  std::memcpy(h.envelope, pkt, static_cast<std::size_t>(size));
  h.envelope_size = size;
  h.held = dest;
}

void lite_host_wait_for_news(void) {
  Call call(kWait);
  Host& h = call.host();
  wait_until(h, -1, [&] { return h.kept.head != nullptr || h.completed != h.completed_seen; });
}

// ---- channel ----

void lite_host_send(const void* buf, int64_t size, int dest) {
  Call call(kStart);
  Host& h = call.host();
  if (dest == h.rank) return send_to_self(h, buf, size);
  int id[4];
  if (HostRequest* r = start_send(h, buf, size, dest, id)) finish(h, r, id);
}

void lite_host_isend(const void* buf, int64_t size, int dest, int* id) {
  Call call(kStart);
  Host& h = call.host();
  keep_id(id, 0);
  if (dest == h.rank) return send_to_self(h, buf, size);
  start_send(h, buf, size, dest, id);
}

void lite_host_recv(void* buf, int64_t maxsize, int from) {
  Call call(kWait);
  Host& h = call.host();
  if (from == h.rank) {
    SelfData* data = h.self_data.take();
    mplite::copy_bytes(buf, data->bytes(), static_cast<std::size_t>(std::min(maxsize, data->size)));
    std::free(data);
    return;
  }
  if (Kept* kept = h.delivered; kept != nullptr && kept->from == from) {
    wait_until(h, from, [&] { return kept->receive->done; });
    int id[4];
    give_back(h, kept->receive, id);
    mplite::copy_bytes(buf, kept->data,
                       static_cast<std::size_t>(std::min(maxsize, kept->data_bytes)));
    h.kept_bytes -= static_cast<std::uint64_t>(kept->data_bytes);
    h.delivered = nullptr;
    return free_kept(kept);
  }
  MPID_ChannelId channel_id = 0;
  check(MPID_IRecvFromChannel(buf, static_cast<std::size_t>(maxsize), from, &channel_id), from);
  HostRequest* r = new_request(h);
  MPID_OnComplete(channel_id, on_done, r);
  h.awaiting = -1;
  int id[4];
  wait_until(h, from, [&] { return r->done; });
  give_back(h, r, id);
}

// ---- transfers ----

void lite_host_create_transfer(void* buf, int64_t size, int* name, int* id) {
  Call call(kStart);
  Host& h = call.host();
  MPID_TransferId transfer = 0;
  MPID_ChannelId receive = 0;
  check(MPID_CreateRecvTransfer(buf, static_cast<std::size_t>(size), MPID_ANY_PARTNER, &transfer),
        h.rank);
  *name = static_cast<int>(MPID_TransferShortName(transfer));
  if (*name == 0) fatal("rank %d: more than %d transfers are under way", h.rank, 1 << 19);
  check(MPID_StartNBRecvTransfer(buf, static_cast<std::size_t>(size), MPID_ANY_PARTNER, transfer,
                                 &receive),
        h.rank);
  follow(h, receive, id);
}

void lite_host_isend_transfer(const void* buf, int64_t size, int dest, int name, int* id) {
  Call call(kStart);
  MPID_ChannelId channel_id = 0;
  const int rc = MPID_StartNBSendTransfer(buf, static_cast<std::size_t>(size), dest,
                                          static_cast<std::uint32_t>(name), &channel_id);
  follow(call.host(), channel_id, id);
  check(rc, dest);
}

void lite_host_send_transfer(const void* buf, int64_t size, int dest, int name) {
  int id[4];
  lite_host_isend_transfer(buf, size, dest, name, id);
  lite_host_wait(id);
}

// ---- completion ----

int lite_host_look(const int* id) {
  Call call(kPoll);
  Host& h = call.host();
  const HostRequest* r = request_of(h, id);
  if (r == nullptr || r->done) return 1;
  progress(nullptr);
  h.completed_seen = h.completed;
  if (!r->done) polled_in_vain(h);
  return r->done ? 1 : 0;
}

int lite_host_test(int* id) {
  if (lite_host_look(id) == 0) return 0;
  lite_host_wait(id);
  return 1;
}

int64_t lite_host_wait(int* id) {
  Call call(kWait);
  Host& h = call.host();
  h.received = 0;
  HostRequest* r = request_of(h, id);
  if (r == nullptr) return 0;
  finish(h, r, id);
  return h.received;
}

int64_t lite_host_received(void) { return g_host->received; }
