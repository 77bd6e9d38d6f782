// MP_*: the engine as a library of its own: checks of arguments, and the translation between ids
// and requests. Implements mplite.h over library.h.

// What the shared library exports; all else is compiled with -fvisibility=hidden (configure.ac).
#pragma GCC visibility push(default)
#include "mplite/mplite.h"
#pragma GCC visibility pop

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "mplite/launch/launched.h"
#include "mplite/messages/library.h"

namespace mplite {
namespace {

using namespace library;

int not_running(const char* call) {
  return fail(MP_ERR_ARG,
              "%s: MP_Init was not called, or did not succeed, or MP_Finalize was called", call);
}

bool running() { return g_library != nullptr && g_library->messages != nullptr; }

int check_transfer(const char* call, const void* buffer, std::int64_t nbytes, int peer, int tag,
                   bool wildcards) {
  if (!running()) return not_running(call);
  if (nbytes < 0 || (nbytes > 0 && buffer == nullptr))
    return fail(MP_ERR_ARG, "%s: %lld bytes at %p", call, static_cast<long long>(nbytes), buffer);
  if (peer >= g_library->size || (peer < 0 && !wildcards))
    return fail(MP_ERR_ARG, "%s: rank %d does not exist (0 to %d do)", call, peer,
                g_library->size - 1);
  if (tag < 0 && !wildcards)
    return fail(MP_ERR_ARG, "%s: the tag of a message cannot be negative (%d)", call, tag);
  return MP_OK;
}

std::int64_t wanted_tag(int tag) { return tag < 0 ? kAnyTag : tag; }
int wanted_source(int source) { return source < 0 ? kAnySource : source; }

MessageRequest* request_of(const char* call, int id, int& result) {
  MessageRequest* r = g_library->messages->find(id);
  if (r == nullptr)
    result = fail(MP_ERR_ARG, "%s: %d is not the id of an operation under way", call, id);
  return r;
}

// The start has ended with this: what is left of one that failed is freed.
int started(int rc) {
  if (rc != MP_OK) free_library();
  return rc;
}

}  // namespace
}  // namespace mplite

using namespace mplite;
using namespace mplite::library;

// ---- start and end ----

// `address`: gets a card that tells the other ranks, should it fail.
static int make_library(void* address) {
  if (g_library != nullptr) return fail(MP_ERR_ARG, "MP_Init: called twice");
  static const char kNoMemory[] = "out of memory at start";
  make_failed_card(kNoMemory, address);
  g_library = new (std::nothrow) Library;
  return g_library != nullptr ? MP_OK : fail(MP_ERR_NOMEM, "%s", kNoMemory);
}

int MP_Init_local(void* address) {
  static_assert(kCardBytes == MP_ADDRESS_BYTES);
  if (const int rc = make_library(address); rc != MP_OK) return rc;
  char error[768];
  const StartFault fault = g_library->listen(address, error, sizeof error);
  return started(fault != StartFault::kNone ? start_fault(fault, error) : MP_OK);
}

int MP_Init_table(int rank, int size, const void* table) {
  if (g_library == nullptr || g_library->peers != nullptr)
    return fail(MP_ERR_ARG, "MP_Init_table belongs behind MP_Init_local, once");
  if (size < 1 || rank < 0 || rank >= size || table == nullptr)
    return started(fail(MP_ERR_ARG, "MP_Init_table: rank %d of %d", rank, size));
  char error[768];
  const StartFault fault = g_library->join(rank, size, table, 0, error, sizeof error);
  return started(fault != StartFault::kNone ? start_fault(fault, error)
                                            : start_messages(*g_library));
}

int MP_Init(int*, char***) {
  Launched launched;
  char error[768];
  if (!read_launched(launched, error, sizeof error))
    return fail(MP_ERR_ARG, "MP_Init: %s, or use MP_Init_local and MP_Init_table", error);
  Card card = {};
  if (const int rc = make_library(&card); rc != MP_OK) {
    tell_failure(launched, card);
    return rc;
  }
  const StartFault fault = start_launched(*g_library, launched, error, sizeof error);
  return started(fault != StartFault::kNone ? start_fault(fault, error)
                                            : start_messages(*g_library));
}

int MP_Finalize(void) {
  if (!running()) return not_running("MP_Finalize");
  Library& l = *g_library;
  int result = MP_OK;
  {
    Hold hold(l.engine->gate());
    l.messages->drop_unmatched();
    const auto flush = [&l] {
      return wait_until(l, -1, [&](std::int64_t) { return l.engine->queued_sends() == 0; })
                 ? MP_OK
                 : no_memory("what the peers still send");
    };
    result = l.leave_together(flush, [&l] { return barrier(l); });
  }
  l.end_progress();
  free_library();
  return result;
}

int MP_Nprocs(void) { return running() ? g_library->size : 0; }
int MP_Myproc(void) { return running() ? g_library->rank : -1; }

// ---- messages ----

int MP_ASend(const void* buffer, int64_t nbytes, int dest, int tag, int* id) {
  if (const int rc = check_transfer("MP_ASend", buffer, nbytes, dest, tag, false); rc != MP_OK)
    return rc;
  Library& l = *g_library;
  Call call(l);
  MessageRequest* r = nullptr;
  *id = MP_DONE;
  const int rc = start_send(l, buffer, static_cast<std::uint64_t>(nbytes), dest,
                            static_cast<std::uint64_t>(tag), r);
  if (rc != MP_OK) return rc;
  if (r->outcome == Outcome::kComplete)
    l.messages->release(r);
  else
    *id = l.messages->id_of(r);
  return MP_OK;
}

int MP_ARecv(void* buffer, int64_t nbytes, int src, int tag, int* id) {
  if (const int rc = check_transfer("MP_ARecv", buffer, nbytes, src, tag, true); rc != MP_OK)
    return rc;
  Library& l = *g_library;
  Call call(l);
  MessageRequest* r = nullptr;
  *id = MP_DONE;
  const int rc = start_receive(l, buffer, static_cast<std::uint64_t>(nbytes), wanted_source(src),
                               wanted_tag(tag), r);
  if (rc == MP_OK) *id = l.messages->id_of(r);
  return rc;
}

static int wait_id(const char* call_name, int* id, bool may_keep) {
  if (!running()) return not_running(call_name);
  if (*id == MP_DONE) return MP_OK;
  Library& l = *g_library;
  int rc = MP_OK;
  Call call(l);
  MessageRequest* r = request_of(call_name, *id, rc);
  if (r == nullptr) return rc;
  rc = wait_for(l, r, may_keep);
  if (rc != MP_ERR_NOMEM) *id = MP_DONE;
  return rc;
}

int MP_Wait(int* id) { return wait_id("MP_Wait", id, true); }
int MP_Block(int* id) { return wait_id("MP_Block", id, false); }

int MP_Test(int* id, int* flag) {
  if (!running()) return not_running("MP_Test");
  *flag = 1;
  if (*id == MP_DONE) return MP_OK;
  Library& l = *g_library;
  int rc = MP_OK;
  Call call(l);
  MessageRequest* r = request_of("MP_Test", *id, rc);
  if (r == nullptr) return rc;
  *flag = 0;
  if (r->outcome == Outcome::kPending) {
    l.engine->set_outstanding(true);
    if (r->source >= 0 && r->source != l.rank) l.engine->prefer(r->source);
    l.engine->poll();
    if (!l.messages->service())
      return no_memory("a message that came before the one that was asked for");
    l.messages->check_hope(r);
    if (r->outcome == Outcome::kPending) return MP_OK;
  }
  *flag = 1;
  *id = MP_DONE;
  return finish(l, r);
}

int MP_Testall(int count, int* ids, int* flag) {
  if (!running()) return not_running("MP_Testall");
  Library& l = *g_library;
  int rc = MP_OK;
  Call call(l);
  *flag = 0;
  for (int i = 0; i < count; ++i)
    if (ids[i] != MP_DONE && request_of("MP_Testall", ids[i], rc) == nullptr) return rc;
  l.engine->set_outstanding(true);
  l.engine->poll_all();
  if (!l.messages->service())
    return no_memory("a message that came before those that were asked for");
  for (int i = 0; i < count; ++i) {
    if (ids[i] == MP_DONE) continue;
    MessageRequest* r = l.messages->find(ids[i]);
    l.messages->check_hope(r);
    if (r->outcome == Outcome::kPending) return MP_OK;
  }
  *flag = 1;
  for (int i = 0; i < count; ++i) {
    if (ids[i] == MP_DONE) continue;
    MessageRequest* r = l.messages->find(ids[i]);
    ids[i] = MP_DONE;
    if (r == nullptr) continue;  // the same id stood twice in the list
    const int one = finish(l, r);
    if (rc == MP_OK) rc = one;
  }
  return rc;
}

static int send_and_wait(const char* call_name, const void* buffer, int64_t nbytes, int dest,
                         int tag, bool may_keep) {
  if (const int rc = check_transfer(call_name, buffer, nbytes, dest, tag, false); rc != MP_OK)
    return rc;
  Library& l = *g_library;
  Call call(l);
  MessageRequest* r = nullptr;
  int rc = start_send(l, buffer, static_cast<std::uint64_t>(nbytes), dest,
                      static_cast<std::uint64_t>(tag), r);
  if (rc != MP_OK) return rc;
  if (r->outcome != Outcome::kPending) return finish(l, r);
  rc = wait_for(l, r, may_keep);
  if (rc == MP_ERR_NOMEM) l.messages->release(r);
  return rc;
}

int MP_Send(const void* buffer, int64_t nbytes, int dest, int tag) {
  return send_and_wait("MP_Send", buffer, nbytes, dest, tag, true);
}
int MP_SSend(const void* buffer, int64_t nbytes, int dest, int tag) {
  return send_and_wait("MP_SSend", buffer, nbytes, dest, tag, false);
}

int MP_Recv(void* buffer, int64_t nbytes, int src, int tag) {
  if (const int rc = check_transfer("MP_Recv", buffer, nbytes, src, tag, true); rc != MP_OK)
    return rc;
  Library& l = *g_library;
  Call call(l);
  MessageRequest* r = nullptr;
  int rc = start_receive(l, buffer, static_cast<std::uint64_t>(nbytes), wanted_source(src),
                         wanted_tag(tag), r);
  if (rc != MP_OK) return rc;
  if (r->outcome != Outcome::kPending) return finish(l, r);
  rc = wait_for(l, r, false);
  if (rc == MP_ERR_NOMEM) l.messages->release(r);
  return rc;
}

int MP_SShift(const void* send_buffer, int dest, void* recv_buffer, int src, int64_t nbytes,
              int tag) {
  int rc = check_transfer("MP_SShift", send_buffer, nbytes, dest, tag, false);
  if (rc == MP_OK) rc = check_transfer("MP_SShift", recv_buffer, nbytes, src, tag, true);
  if (rc != MP_OK) return rc;
  Library& l = *g_library;
  Call call(l);
  MessageRequest *in = nullptr, *out = nullptr;
  rc = start_receive(l, recv_buffer, static_cast<std::uint64_t>(nbytes), wanted_source(src), tag,
                     in);
  if (rc != MP_OK) return rc;
  rc = start_send(l, send_buffer, static_cast<std::uint64_t>(nbytes), dest,
                  static_cast<std::uint64_t>(tag), out);
  if (rc != MP_OK) {
    l.messages->release(in);
    return rc;
  }
  const int received = wait_for(l, in, false);
  if (received == MP_ERR_NOMEM) l.messages->release(in);
  rc = wait_for(l, out, true);
  if (rc == MP_ERR_NOMEM) l.messages->release(out);
  return received != MP_OK ? received : rc;
}

static void tell(Library& l, const MessageInfo& info) {
  l.last_tag = static_cast<int>(info.tag);
  l.last_source = info.source;
  l.last_size = static_cast<std::int64_t>(info.bytes);
}

int MP_AProbe(int64_t nbytes, int src, int tag, int* flag) {
  static char nothing;
  if (const int rc = check_transfer("MP_AProbe", &nothing, 0, src, tag, true); rc != MP_OK)
    return rc;
  Library& l = *g_library;
  Call call(l);
  *flag = 0;
  src = wanted_source(src);
  l.engine->set_outstanding(true);
  MessageInfo info;
  bool found = l.messages->probe(src, wanted_tag(tag), info);
  if (!found) {
    l.engine->poll_all();
    if (!l.messages->service())
      return no_memory("a message that came before the one that was probed for");
    found = l.messages->probe(src, wanted_tag(tag), info);
    // What was looked for may stand behind a message that is held back.
    if (!found && !l.messages->make_room_for(src))
      return no_memory("a message that came before the one that was probed for");
    found = found || l.messages->probe(src, wanted_tag(tag), info);
  }
  if (!found && src >= 0 && src != l.rank)
    if (const int error = l.engine->peer_error(src); error != 0) return fail_peer(src, error);
  if (!found || (nbytes >= 0 && info.bytes > static_cast<std::uint64_t>(nbytes))) return MP_OK;
  tell(l, info);
  *flag = 1;
  return MP_OK;
}

int MP_Probe(int64_t nbytes, int src, int tag) {
  static char nothing;
  if (const int rc = check_transfer("MP_Probe", &nothing, 0, src, tag, true); rc != MP_OK)
    return rc;
  Library& l = *g_library;
  Call call(l);
  src = wanted_source(src);
  MessageInfo info;
  bool found = false, room = true;
  int lost = -1;
  room = wait_until(l, src,
                    [&](std::int64_t) {
                      found = l.messages->probe(src, wanted_tag(tag), info);
                      if (!found) {
                        room = l.messages->make_room_for(src);
                        lost = l.messages->hopeless_source(src);
                      }
                      return found || !room || lost >= 0;
                    }) &&
         room;
  if (!found && lost >= 0) return fail_peer(lost, l.engine->peer_error(lost));
  if (!found) return no_memory("a message that came before the one that was probed for");
  tell(l, info);
  if (nbytes >= 0 && info.bytes > static_cast<std::uint64_t>(nbytes))
    return fail(MP_ERR_TRUNCATE,
                "rank %d: the message with tag %d from rank %d has %llu bytes, %lld were allowed",
                l.rank, l.last_tag, l.last_source, static_cast<unsigned long long>(info.bytes),
                static_cast<long long>(nbytes));
  return MP_OK;
}

int MP_Sync(void) {
  if (!running()) return not_running("MP_Sync");
  Call call(*g_library);
  return barrier(*g_library);
}

int MP_Get_Last_Tag(void) { return running() ? g_library->last_tag : -1; }
int MP_Get_Last_Source(void) { return running() ? g_library->last_source : -1; }
int64_t MP_Get_Last_Size(void) { return running() ? g_library->last_size : 0; }

double MP_Time(void) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

const char* MP_Last_Error(void) { return g_last_error; }
