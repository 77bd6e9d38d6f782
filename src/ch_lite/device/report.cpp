// What a rank waits for, as lines for people and programs.
#include "ch_lite/device/report.h"

#include <cstdio>
#include <cstring>

#include "mplite/base/bounded_text.h"

namespace ch_lite {
namespace {

using mplite::BoundedText;
using ull = unsigned long long;

constexpr std::size_t kPartBytes = 192;  // of what a line is put together from

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

bool is_open(const Request& r) {
  return r.state != RequestState::kFree && r.state != RequestState::kComplete &&
         r.state != RequestState::kReported;
}

// What is open at the device: counts, and the newest requests.
struct Open {
  std::uint32_t receives = 0, sends = 0, active_messages = 0, one_sided = 0;
  bool any_source = false;
  const Request* newest[kReportLines];
  int listed = 0;

  std::uint32_t requests() const { return receives + sends + active_messages + one_sided; }
  void add(const Request& r) {
    switch (r.kind) {
      case RequestKind::kReceive: ++receives; break;
      case RequestKind::kSend: ++sends; break;
      case RequestKind::kAmSend: ++active_messages; break;
      case RequestKind::kPut:
      case RequestKind::kGet: ++one_sided; break;
    }
    if (r.peer < 0) any_source = true;
    int at = listed;
    while (at > 0 && is_newer(r, *newest[at - 1])) --at;
    if (at == kReportLines) return;
    if (listed < kReportLines) ++listed;
    for (int i = listed - 1; i > at; --i) newest[i] = newest[i - 1];
    newest[at] = &r;
  }

 private:
  static bool is_newer(const Request& a, const Request& b) {
    return a.begun_ns != b.begun_ns ? a.begun_ns > b.begun_ns : a.match_sequence > b.match_sequence;
  }
};

class Report {
 public:
  Report(Core& core, const WaitingCall& call, char* text, std::size_t size)
      : core_(core), call_(call), out_(text, size) {
    core.requests.visit_taken([this](Request* r) {
      if (is_open(*r)) open_.add(*r);
    });
  }
  std::size_t write() {
    headline();
    sum();
    for (int i = 0; i < open_.listed; ++i) request(*open_.newest[i]);
    rest(open_.requests(), "requests");
    unexpected();
    connections();
    return out_.length();
  }

 private:
  void begin_line() { out_.add("ch_lite[rank %d on %s]: ", core_.self(), call_.host); }
  void rest(std::uint64_t all, const char* what) {
    if (all <= static_cast<std::uint64_t>(kReportLines)) return;
    begin_line();
    out_.add("  and %llu more %s\n", static_cast<ull>(all - kReportLines), what);
  }

  const char* name_peer(int peer, char (&text)[kPartBytes]) const {
    if (peer < 0)
      std::snprintf(text, sizeof text, "any rank");
    else if (core_.is_own_job(peer))
      std::snprintf(text, sizeof text, "rank %d", peer);
    else
      std::snprintf(text, sizeof text, "process %d, of another job", peer);
    return text;
  }
  // ", tag 5 in MPI_COMM_WORLD". `source`: of who sends, in the communicator.
  void add_envelope(const MatchKey& key, int peer) {
    char context[kPartBytes];
    std::snprintf(context, sizeof context, "context %u", key.context);
    if (core_.host.context_name != nullptr)
      core_.host.context_name(key.context, context, sizeof context);
    if (key.tag == LITE_ANY_TAG)
      out_.add(", any tag in %s", context);
    else
      out_.add(", tag %d in %s", key.tag, context);
    if (peer >= 0 && key.source >= 0 && key.source != peer)
      out_.add(" (source %d there)", key.source);
  }

  // What the call waits for, as far as that is known.
  void headline() {
    begin_line();
    if (call_.polls) {
      out_.add("polls in calls that do not wait (MPI_Test, MPI_Iprobe)");
      subject();
      return out_.add("\n");
    }
    out_.add("waits in MPI");
    if (call_.name != nullptr) out_.add("_%s", call_.name);
    subject();
    out_.add(": nothing sent or received for %.1f s, in this call since %s (%.1f s)\n",
             seconds(call_.now_ns - call_.moved_ns), call_.since,
             seconds(call_.now_ns - call_.began_ns));
  }
  void subject() {
    char peer[kPartBytes];
    if (call_.name != nullptr &&
        (std::strcmp(call_.name, "Probe") == 0 || std::strcmp(call_.name, "Mprobe") == 0)) {
      out_.add(" for %s", name_peer(core_.sought.peer, peer));
      return add_envelope(core_.sought.key, core_.sought.peer);
    }
    if (open_.requests() == 0) return;
    if (open_.requests() > 1 && !call_.started_newest)
      return out_.add(" for requests of %u", open_.requests());
    const Request& r = *open_.newest[0];
    out_.add(" for %s", name_peer(r.peer, peer));
    if (r.kind == RequestKind::kSend) out_.add(" to receive");
    if (r.kind == RequestKind::kReceive || r.kind == RequestKind::kSend)
      add_envelope(r.key, r.kind == RequestKind::kReceive ? r.peer : -1);
  }
  void sum() {
    begin_line();
    out_.add(
        "  open: %u receives, %u sends, %u active messages, %u one-sided; here and not received: "
        "%u messages, %u active messages; %llu bytes held\n",
        open_.receives, open_.sends, open_.active_messages, open_.one_sided,
        core_.matcher.unexpected_count(), core_.active_arrivals.waiting(),
        static_cast<ull>(core_.blocks.bytes_in_use()));
  }

  // ---- requests ----

  void request(const Request& r) {
    char peer[kPartBytes];
    begin_line();
    name_peer(r.peer, peer);
    switch (r.kind) {
      case RequestKind::kReceive:
        out_.add("  receive from %s", peer);
        add_envelope(r.key, r.peer);
        out_.add(", room for %llu bytes", static_cast<ull>(r.bytes));
        break;
      case RequestKind::kSend:
        out_.add("  send to %s", peer);
        add_envelope(r.key, -1);
        out_.add(", %llu bytes", static_cast<ull>(r.bytes));
        break;
      case RequestKind::kAmSend:
        out_.add("  active message to %s, handler %u, %llu bytes", peer, r.am_handler,
                 static_cast<ull>(r.bytes));
        break;
      case RequestKind::kPut:
        out_.add("  put to %s, %llu bytes", peer, static_cast<ull>(r.bytes));
        break;
      case RequestKind::kGet:
        out_.add("  get from %s, %llu bytes", peer, static_cast<ull>(r.bytes));
        break;
    }
    if (r.begun_ns != 0) out_.add(", begun %.1f s ago", seconds(call_.now_ns - r.begun_ns));
    out_.add(": ");
    state(r);
    out_.add("\n");
  }
  void state(const Request& r) {
    const bool one_sided = r.kind == RequestKind::kPut || r.kind == RequestKind::kGet;
    switch (r.state) {
      case RequestState::kPosted: return out_.add("no message has come");
      case RequestState::kReceivingChannel:
        return out_.add("its message of %llu bytes is arriving", static_cast<ull>(r.incoming));
      case RequestState::kReceivingTransfer:
        if (r.kind == RequestKind::kGet) return out_.add("asked for, its data is arriving");
        return out_.add("its message of %llu bytes is asked for (clear to send), and arriving",
                        static_cast<ull>(r.incoming));
      case RequestState::kAwaitingCts:
        return out_.add("by rendezvous, waits to be received there (clear to send)");
      case RequestState::kSending:
        return out_.add(r.accepted != 0 ? "by rendezvous, its data is being sent"
                                        : "eager, its data is being sent");
      case RequestState::kSendingAwaitingAck:
        return out_.add("synchronous, its data is being sent");
      case RequestState::kAwaitingAck:
        return out_.add("%s", one_sided ? "sent, waits to be acknowledged"
                                        : "synchronous, sent, waits to be received there");
      case RequestState::kSelfPinned: return out_.add("to itself, waits to be received");
      case RequestState::kWaitingCredit:
        return out_.add("%s", one_sided ? "waits for its turn" : "waits for credit");
      case RequestState::kAwaitingAnswer: return out_.add("sent, waits for the answer");
      case RequestState::kFree:
      case RequestState::kComplete:
      case RequestState::kReported: return;  // not open
    }
  }

  // ---- unexpected messages ----

  void unexpected() {
    core_.matcher.visit_unexpected(
        [](void* self, UnexpectedNode* m) {
          static_cast<Report*>(self)->message(*static_cast<Message*>(m));
        },
        this);
    rest(core_.matcher.unexpected_count(), "messages not received");
  }
  void message(const Message& m) {
    if (messages_++ >= kReportLines) return;
    char peer[kPartBytes];
    begin_line();
    out_.add("  not received: from %s", name_peer(m.peer, peer));
    add_envelope(m.key, m.peer);
    out_.add(", %llu bytes: %s\n", static_cast<ull>(m.bytes), whereabouts(m));
  }
  static const char* whereabouts(const Message& m) {
    switch (m.state) {
      case MessageState::kReady:
        return m.fragment != 0 ? "a part is here, the rest is at its sender" : "is here";
      case MessageState::kOffered: return "is at its sender";
      case MessageState::kPinned: return "from itself";
      default: return "is arriving";
    }
  }

  // ---- connections ----

  // Those that something open concerns, and those where something is under way.
  bool concerns(int peer) const {
    const int underway = MPID_ChannelUnderway(peer);
    return core_.peers[peer].pending.head != nullptr || underway == 2 ||
           (underway == 1 && (open_.any_source || open_.requests() == 0));
  }
  void connections() {
    std::uint64_t all = 0;
    for (int i = 0; i < core_.peers.count(); ++i)
      if (i != core_.self() && concerns(i) && all++ < static_cast<std::uint64_t>(kReportLines))
        connection(i);
    rest(all, "connections");
  }
  void connection(int peer) {
    char text[MPID_CHANNEL_REPORT_BYTES];
    const Credits& credit = core_.peers[peer].credits[kPointToPoint];
    begin_line();
    out_.add("  connection to %s; credit for %llu of %llu bytes\n",
             MPID_ChannelReport(peer, text, sizeof text), static_cast<ull>(credit.left()),
             static_cast<ull>(credit.window()));
  }

  Core& core_;
  const WaitingCall& call_;
  BoundedText out_;
  Open open_;
  int messages_ = 0;
};

}  // namespace

std::size_t format_report(Core& core, const WaitingCall& call, char* text, std::size_t size) {
  return Report(core, call, text, size).write();
}

}  // namespace ch_lite
