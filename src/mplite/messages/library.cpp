// The MP_* library of this process: its job and its messages, waiting in a call, the barrier.
#include "mplite/messages/library.h"

#include <cerrno>
#include <new>

#include "mplite/mplite.h"

namespace mplite::library {
namespace {

// A send that is waited for gets a copy when the kernel took nothing of anything for so long: the
// receiver is busy with something else. Shorter, and a receiver that is only a little late costs a
// copy of each long message.
constexpr std::int64_t kKeepAfterNs = 500'000;

// From the controller: the handler, the helper thread, or on behalf of a handler that was turned
// away.
void progress(void*) {
  Library& l = *g_library;
  l.engine->poll();
  // What the handler could not take for want of memory waits for ordinary context.
  if (!l.engine->async()) l.messages->service();
  tell_outstanding(l);
}

}  // namespace

Library* g_library = nullptr;

int fail_peer(int peer, int error) { return g_library->fail_lost(MP_ERR_PEER_LOST, peer, error); }

int no_memory(const char* what) {
  return fail(MP_ERR_NOMEM, "rank %d is out of memory for %s", g_library->rank, what);
}

int start_fault(StartFault fault, const char* error) {
  return fail(fault == StartFault::kArgument || fault == StartFault::kTable ? MP_ERR_ARG
              : fault == StartFault::kMemory                                ? MP_ERR_NOMEM
                                                                            : MP_ERR_SYSTEM,
              "%s", error);
}

void tell_outstanding(Library& l) {
  const bool outstanding = l.messages->pending_receives() > 0 || l.engine->queued_sends() > 0;
  l.engine->set_outstanding(outstanding);
  l.controller.set_outstanding(outstanding);
}

void free_library() {
  Library* l = g_library;
  if (l == nullptr) return;
  l->end_engine();  // completes what is left, so before what it calls
  delete l->messages;
  delete l;
  g_library = nullptr;
}

int start_messages(Library& l) {
  auto* messages = new (std::nothrow) Messages(*l.engine, l.knobs.unexpected_max);
  if (messages == nullptr || !messages->start()) {
    delete messages;
    return fail(MP_ERR_NOMEM, "out of memory for the queues of %d ranks", l.size);
  }
  l.messages = messages;
  char error[768];
  if (const StartFault fault = l.start_progress(progress, &l.want_arm, error, sizeof error);
      fault != StartFault::kNone)
    return start_fault(fault, error);
  return MP_OK;
}

int finish(Library& l, MessageRequest* r) {
  int result = MP_OK;
  if (r->outcome == Outcome::kPeerLost) {
    result = fail_peer(r->peer, r->error);
  } else if (!r->is_send) {
    if (r->outcome == Outcome::kTruncated)
      result = fail(MP_ERR_TRUNCATE,
                    "rank %d: the message with tag %lld from rank %d is longer than the receive of "
                    "%llu bytes",
                    l.rank, static_cast<long long>(r->matched_tag), r->peer,
                    static_cast<unsigned long long>(r->room));
    if (r->matched_tag <= kUserTagMax) {
      l.last_tag = static_cast<int>(r->matched_tag);
      l.last_source = r->peer;
      l.last_size = static_cast<std::int64_t>(r->bytes);
    }
  }
  l.messages->release(r);
  return result;
}

int wait_for(Library& l, MessageRequest* r, bool may_keep) {
  const bool room =
      wait_until(l, r->is_send || r->source >= 0 ? r->source : -1, [&](std::int64_t quiet_ns) {
        l.messages->check_hope(r);
        if (r->outcome == Outcome::kPending && r->is_send && may_keep && quiet_ns >= kKeepAfterNs)
          l.messages->keep(r);
        return r->outcome != Outcome::kPending;
      });
  if (!room) return no_memory("a message that came before the one that was waited for");
  return finish(l, r);
}

int start_send(Library& l, const void* buffer, std::uint64_t bytes, int dest, std::uint64_t tag,
               MessageRequest*& r) {
  const int rc = l.messages->send(buffer, bytes, dest, tag, r);
  if (rc == 0) return MP_OK;
  if (rc == -ENOMEM) return no_memory("a send");
  return fail_peer(dest, -rc);
}

int start_receive(Library& l, void* buffer, std::uint64_t room, int src, std::int64_t tag,
                  MessageRequest*& r) {
  return l.messages->receive(buffer, room, src, tag, r) == 0 ? MP_OK : no_memory("a receive");
}

int barrier(Library& l) {
  return disseminate(l.rank, l.size, [&l](int round, int to, int from) {
    const std::uint64_t tag = kSystemTag + static_cast<std::uint64_t>(round);
    MessageRequest *out = nullptr, *in = nullptr;
    int rc = start_send(l, nullptr, 0, to, tag, out);
    if (rc != MP_OK) return rc;
    rc = start_receive(l, nullptr, 0, from, static_cast<std::int64_t>(tag), in);
    if (rc != MP_OK) {
      l.messages->release(out);
      return rc;
    }
    const int received = wait_for(l, in, false);
    if (received == MP_ERR_NOMEM) l.messages->release(in);
    rc = wait_for(l, out, true);
    return rc != MP_OK ? rc : received;
  });
}

}  // namespace mplite::library
