// process.h: a process comes to a running engine, or says why not.
#include "mplite/runtime/process.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "address_of.h"
#include "mplite/base/address.h"
#include "mplite/net/loss.h"
#include "run_tests.h"

using namespace mplite;

namespace {

struct Fixture {
  Process process;
  Card card = {};
  char error[768] = "";
  Fixture() { setenv("LITE_IFACE", "lo", 1); }
};

START_TEST(job_of_one_rank_listens_joins_and_ends) {
  auto f = std::make_unique<Fixture>();
  ck_assert_msg(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kNone, "%s",
                f->error);
  ck_assert_uint_ne(f->card.port, 0);
  ck_assert_int_ge(f->process.listeners[0], 0);
  ck_assert_msg(f->process.join(0, 1, &f->card, 0, f->error, sizeof f->error) == StartFault::kNone,
                "%s", f->error);
  ck_assert_ptr_nonnull(f->process.engine);
  ck_assert_int_eq(f->process.listeners[0], -1);  // the engine's now
  ck_assert_int_eq(f->process.spare, -1);
  ck_assert_int_eq(f->process.sharing, 1);
  ck_assert_int_eq(f->process.engine->size(), 1);
  f->process.end_engine();
  f->process.end_engine();
  ck_assert_ptr_null(f->process.engine);
}
END_TEST

START_TEST(bad_knob_is_an_argument_fault_that_names_it) {
  setenv("LITE_EAGER_MAX", "plenty", 1);
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kArgument);
  ck_assert_ptr_nonnull(std::strstr(f->error, "LITE_EAGER_MAX"));
  ck_assert_ptr_nonnull(std::strstr(f->error, "plenty"));
  ck_assert_int_eq(f->process.listeners[0], -1);
}
END_TEST

START_TEST(bad_profile_is_an_argument_fault_that_names_it) {
  setenv("LITE_PROFILE", "/nowhere/profile", 1);
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kArgument);
  ck_assert_ptr_nonnull(std::strstr(f->error, "/nowhere/profile"));
}
END_TEST

START_TEST(interface_that_does_not_exist_is_an_argument_fault) {
  auto f = std::make_unique<Fixture>();
  setenv("LITE_IFACE", "nosuch0", 1);
  ck_assert(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kArgument);
  ck_assert_ptr_nonnull(std::strstr(f->error, "nosuch0"));
}
END_TEST

START_TEST(port_range_that_is_taken_is_a_system_fault) {
  auto first = std::make_unique<Fixture>();
  ck_assert(first->process.listen(&first->card, first->error, sizeof first->error) ==
            StartFault::kNone);
  char range[32];
  std::snprintf(range, sizeof range, "%d:%d", first->card.port, first->card.port);
  setenv("LITE_PORT_RANGE", range, 1);
  auto second = std::make_unique<Fixture>();
  ck_assert(second->process.listen(&second->card, second->error, sizeof second->error) ==
            StartFault::kSystem);
  ck_assert_str_ne(second->error, "");
}
END_TEST

START_TEST(bad_table_is_a_fault_of_all_ranks_that_names_the_rank) {
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kNone);
  Card table[2] = {f->card, {}};
  ck_assert(f->process.join(0, 2, table, 0, f->error, sizeof f->error) == StartFault::kTable);
  ck_assert_ptr_nonnull(std::strstr(f->error, "rank 1"));
}
END_TEST

// As of two machines behind NAT, each with a network besides.
START_TEST(listener_of_the_address_that_the_table_leaves_is_the_first) {
  auto f = std::make_unique<Fixture>();
  Process& p = f->process;
  ck_assert(p.listen(&f->card, f->error, sizeof f->error) == StartFault::kNone);
  p.choice.more[0].address = address_of("127.0.0.2");
  p.choice.more_count = 1;
  open_more_listeners(p.net, p.choice, p.knobs, p.listeners);
  ck_assert_int_eq(p.choice.more_count, 1);
  f->card.more[0] = compact(p.choice.more[0].address);
  Card table[2] = {f->card, f->card};
  table[1].more[0] = compact(address_of("127.0.0.3"));
  table[1].more[0].port = 4711;
  std::memset(table[1].network, 7, sizeof table[1].network);
  const std::uint16_t first = f->card.port, second = f->card.more[0].port;
  p.knobs.lanes = 1;  // or else all stay, for lanes
  ck_assert_msg(p.join(0, 2, table, 1, f->error, sizeof f->error) == StartFault::kNone, "%s",
                f->error);
  ck_assert_uint_eq(port_of(p.peers[0].address), second);
  ck_assert_uint_eq(port_of(p.choice.address), second);
  // When all are connected, or lost, the first listener alone is there.
  {
    Hold hold(p.engine->gate());
    p.engine->give_up(1, ETIMEDOUT);
  }
  const auto connects = [](const char* address, std::uint16_t port) {
    sockaddr_storage to = address_of(address);
    set_port(to, port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool good = connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)) == 0;
    close(fd);
    return good;
  };
  ck_assert(connects("127.0.0.2", second));
  ck_assert(!connects("127.0.0.1", first));
}
END_TEST

START_TEST(who_cannot_start_has_a_card_that_tells_the_others) {
  setenv("LITE_CREDITS", "few", 1);
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kArgument);
  unsetenv("LITE_CREDITS");
  auto other = std::make_unique<Fixture>();
  ck_assert(other->process.listen(&other->card, other->error, sizeof other->error) ==
            StartFault::kNone);
  Card table[2] = {other->card, f->card};
  ck_assert(other->process.join(0, 2, table, 0, other->error, sizeof other->error) ==
            StartFault::kTable);
  ck_assert_msg(std::strncmp(other->error, "rank 1 on host ", 15) == 0, "%s", other->error);
  ck_assert_ptr_nonnull(std::strstr(other->error, f->error));
}
END_TEST

START_TEST(card_holds_what_the_knobs_say) {
  setenv("LITE_CREDITS", "64K", 1);
  setenv("LITE_UNEXPECTED_MAX", "1M", 1);
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kNone);
  ck_assert_uint_eq(f->card.credits, 64 << 10);
  ck_assert_uint_eq(f->card.unexpected_max, 1 << 20);
}
END_TEST

START_TEST(secret_file_that_cannot_be_used_is_an_argument_fault) {
  setenv("LITE_SECRET_FILE", "/nowhere/file", 1);
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kArgument);
  ck_assert_str_eq(f->error,
                   "LITE_SECRET_FILE=/nowhere/file cannot be used: No such file or directory");
}
END_TEST

START_TEST(interface_that_mpiexec_names_and_is_not_there_is_told_as_such) {
  auto f = std::make_unique<Fixture>();
  unsetenv("LITE_IFACE");
  setenv("MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE", "nosuch0", 1);
  ck_assert(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kArgument);
  ck_assert_ptr_nonnull(std::strstr(f->error, "nosuch0"));
  ck_assert_ptr_nonnull(std::strstr(f->error, "mpiexec -iface"));
}
END_TEST

START_TEST(advice_names_our_own_side_and_the_knob) {
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kNone);
  char text[Process::kAdviceBytes];
  const auto ck_assert_advised = [&](int peer, int error, const char* own) {
    f->process.advice(peer, error, text, sizeof text);
    ck_assert_int_eq(std::strncmp(text, own, std::strlen(own)), 0);
    ck_assert_ptr_nonnull(std::strstr(text, "LITE_IFACE"));
  };
  const int errors[] = {ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ECONNREFUSED, kNoCommonFamily};
  for (const int error : errors)
    ck_assert_advised(-1, error, "; this rank has interface lo, 127.0.0.1: ");
  ck_assert_str_eq(f->process.advice(-1, ECONNRESET, text, sizeof text), "");
  ck_assert_msg(f->process.join(0, 1, &f->card, 0, f->error, sizeof f->error) == StartFault::kNone,
                "%s", f->error);
  for (const int error : errors)
    ck_assert_advised(0, error, "; tried from interface lo, 127.0.0.1: ");
}
END_TEST

// Which of our addresses the kernel would call from, and not the one that was chosen first.
START_TEST(advice_names_each_of_the_addresses_that_the_peer_was_called_from) {
  auto f = std::make_unique<Fixture>();
  ck_assert(f->process.listen(&f->card, f->error, sizeof f->error) == StartFault::kNone);
  ck_assert_msg(f->process.join(0, 1, &f->card, 0, f->error, sizeof f->error) == StartFault::kNone,
                "%s", f->error);
  f->process.peers[0].address = address_of("127.0.0.7");
  f->process.peers[0].more[0] = compact(address_of("127.0.0.8"));
  f->process.choice.address = address_of("10.1.2.3");
  char text[Process::kAdviceBytes];
  f->process.advice(0, ETIMEDOUT, text, sizeof text);
  ck_assert_ptr_nonnull(std::strstr(text, "; tried from interface lo, 127.0.0.1: check"));
  f->process.advice(-1, ETIMEDOUT, text, sizeof text);
  ck_assert_ptr_nonnull(std::strstr(text, "; this rank has 10.1.2.3: check"));
  f->process.choice.more_count = 2;
  f->process.choice.more[0].address = address_of("127.0.0.1");
  f->process.choice.more[1].address = address_of("10.1.2.4");
  f->process.advice(-1, ETIMEDOUT, text, sizeof text);
  ck_assert_ptr_nonnull(
      std::strstr(text, "; this rank has 10.1.2.3, interface lo, 127.0.0.1 and 10.1.2.4: check"));
}
END_TEST

START_TEST(too_few_descriptors_are_told_before_the_job_starts) {
  bool spare_missed = false;
  int extra = 0;
  for (bool started = false; !started; ++extra) {
    ck_assert_int_lt(extra, 32);
    auto f = std::make_unique<Fixture>();
    const int lowest = dup(0);
    close(lowest);
    rlimit before, few;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = {static_cast<rlim_t>(lowest + extra), before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    const StartFault fault = f->process.listen(&f->card, f->error, sizeof f->error);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    started = fault == StartFault::kNone;
    if (started) {
      ck_assert_int_ge(f->process.spare, 0);
      continue;
    }
    ck_assert(fault == StartFault::kSystem ||
              fault == StartFault::kArgument);  // the latter: a profile that cannot be opened
    ck_assert_msg(std::strstr(f->error, "ulimit -n") != nullptr, "%s", f->error);
    spare_missed =
        spare_missed || std::strstr(f->error, "no descriptor is left for a connection") != nullptr;
  }
  ck_assert(spare_missed);
}
END_TEST

}  // namespace

int main() { return run_tests("process"); }
