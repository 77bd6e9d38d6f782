// mplite.h as programs see it: every test forks its ranks, which meet through MPLITE_FD as under
// lite-mprun, for each controller, over IPv4 and IPv6.
#include "mplite/mplite.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

#include "../sim/random.h"
#include "content.h"
#include "run_tests.h"

namespace {

using Body = std::function<void()>;

constexpr const char* kControllers[] = {"sigio", "thread", "sync"};
constexpr const char* kFamilies[] = {"ipv4", "ipv6"};

double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// ---- in a rank ----

#define REQUIRE(condition)                                                             \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      std::fprintf(stderr, "%s:%d: rank %d: %s; last error: %s\n", __FILE__, __LINE__, \
                   MP_Myproc(), #condition, MP_Last_Error());                          \
      _exit(1);                                                                        \
    }                                                                                  \
  } while (false)
#define OK(call) REQUIRE((call) == MP_OK)

// No call of the library in the meantime. Returns when the time is over, signals or not.
void compute(double s) {
  const double end = seconds() + s;
  while (seconds() < end) {}
}

struct Setting {
  const char* name;
  const char* value;
};

// ---- in the test ----

struct Ranks {
  std::vector<pid_t> pid;
  std::vector<int> fd;

  // Starts `size` ranks that run `body` between MP_Init and MP_Finalize (unless `plain`: then the
  // body does everything).
  Ranks(int size, std::vector<Setting> settings, const Body& body, bool plain = false) {
    for (int i = 0; i < size; ++i) {
      int pair[2];
      ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
      const pid_t child = fork();
      ck_assert_int_ge(child, 0);
      if (child == 0) {
        for (const int other : fd) close(other);
        close(pair[0]);
        set("MPLITE_RANK", i);
        set("MPLITE_SIZE", size);
        set("MPLITE_FD", pair[1]);
        setenv("LITE_IFACE", "lo", 1);
        for (const Setting& s : settings) setenv(s.name, s.value, 1);
        if (!plain) OK(MP_Init(nullptr, nullptr));
        body();
        if (!plain) OK(MP_Finalize());
        _exit(0);
      }
      close(pair[1]);
      pid.push_back(child);
      fd.push_back(pair[0]);
    }
  }
  ~Ranks() {
    for (const int f : fd)
      if (f >= 0) close(f);
  }

  static void set(const char* name, int value) {
    char text[16];
    std::snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
  }

  void exchange() {
    Bytes table(pid.size() * MP_ADDRESS_BYTES);
    for (std::size_t i = 0; i < pid.size(); ++i)
      ck_assert_int_eq(recv(fd[i], &table[i * MP_ADDRESS_BYTES], MP_ADDRESS_BYTES, MSG_WAITALL),
                       MP_ADDRESS_BYTES);
    for (const int f : fd)
      ck_assert_int_eq(send(f, table.data(), table.size(), MSG_NOSIGNAL),
                       static_cast<ssize_t>(table.size()));
  }

  // The wait status of a rank; those that take too long are killed, and that fails the test.
  int status(std::size_t rank, double timeout_s = 40) {
    const double end = seconds() + timeout_s;
    int status = 0;
    for (;;) {
      const pid_t done = waitpid(pid[rank], &status, WNOHANG);
      ck_assert_int_ge(done, 0);
      if (done == pid[rank]) return status;
      if (seconds() > end) {
        for (std::size_t i = rank; i < pid.size(); ++i) kill(pid[i], SIGKILL);
        ck_abort_msg("rank %zu hangs", rank);
      }
      poll(nullptr, 0, 1);
    }
  }
  void all_end_well() {
    for (std::size_t i = 0; i < pid.size(); ++i)
      ck_assert_msg(status(i) == 0, "rank %zu failed", i);
  }
};

void run(int size, std::vector<Setting> settings, const Body& body) {
  Ranks ranks(size, settings, body);
  ranks.exchange();
  ranks.all_end_well();
}

// Under each controller and each family.
void run_everywhere(int size, const Body& body, std::vector<Setting> more = {}) {
  for (const char* controller : kControllers)
    for (const char* family : kFamilies) {
      std::vector<Setting> settings = more;
      settings.push_back({"LITE_CONTROLLER", controller});
      settings.push_back({"LITE_FAMILY", family});
      run(size, settings, body);
    }
}

// Under each controller and each kind of protection.
void run_protected(int size, const Body& body) {
  for (const char* controller : kControllers)
    for (const char* protection : {"auth", "on"})
      run(size, {{"LITE_CONTROLLER", controller}, {"LITE_ENCRYPT", protection}}, body);
}

START_TEST(messages_from_nothing_to_four_megabytes_arrive_as_sent) {
  const auto exchange = [] {
    const int me = MP_Myproc(), other = 1 - me;
    REQUIRE(MP_Nprocs() == 2);
    for (const std::size_t size : {0, 1, 3, 100, 1000, 1024, 1025, 5000, 65536, 100'000, 262'144,
                                   262'145, 1 << 20, 4 << 20}) {
      const Bytes mine = content(size, 2 * size + static_cast<std::size_t>(me)),
                  theirs = content(size, 2 * size + static_cast<std::size_t>(other));
      Bytes got(size + 1, 0xee);
      if (me == 0) OK(MP_Send(mine.data(), static_cast<int64_t>(size), other, 5));
      OK(MP_Recv(got.data(), static_cast<int64_t>(size), other, 5));
      if (me == 1) OK(MP_Send(mine.data(), static_cast<int64_t>(size), other, 5));
      REQUIRE(std::equal(theirs.begin(), theirs.end(), got.begin()));
      REQUIRE(got[size] == 0xee);
      REQUIRE(MP_Get_Last_Source() == other && MP_Get_Last_Tag() == 5 &&
              MP_Get_Last_Size() == static_cast<int64_t>(size));
    }
  };
  run_everywhere(2, exchange);
  run_protected(2, exchange);
}
END_TEST

// The receiver computes: what the kernel did not take at once moves on by itself, on both sides.
START_TEST(protected_messages_move_on_while_both_ranks_compute) {
  for (const char* controller : {"sigio", "thread"})
    for (const char* protection : {"auth", "on"})
      run(2, {{"LITE_CONTROLLER", controller}, {"LITE_ENCRYPT", protection}}, [] {
        const int me = MP_Myproc(), other = 1 - me;
        constexpr std::size_t kBytes = 16 << 20;
        const Bytes mine = content(kBytes, static_cast<std::uint64_t>(me)),
                    theirs = content(kBytes, static_cast<std::uint64_t>(other));
        Bytes got(kBytes);
        int in = MP_DONE, out = MP_DONE, flag_in = 0, flag_out = 0;
        OK(MP_ARecv(got.data(), kBytes, other, 5, &in));
        OK(MP_Sync());
        OK(MP_ASend(mine.data(), kBytes, other, 5, &out));
        const double start = seconds();
        compute(3);  // 16 MB take a tenth of that
        const double computed = seconds();
        OK(MP_Test(&in, &flag_in));
        OK(MP_Test(&out, &flag_out));
        REQUIRE(flag_in == 1 && flag_out == 1);
        REQUIRE(computed - start > 2.9);
        REQUIRE(got == theirs);
      });
}
END_TEST

START_TEST(tags_are_received_in_any_order) {
  run_everywhere(2, [] {
    constexpr int kTags = 20;
    if (MP_Myproc() == 0) {
      for (int tag = 0; tag < kTags; ++tag) {
        const Bytes data =
            content(static_cast<std::size_t>(tag) * 5000, static_cast<std::uint64_t>(tag));
        OK(MP_Send(data.data(), static_cast<int64_t>(data.size()), 1, tag));
      }
    } else {
      for (int tag = kTags; tag-- > 0;) {
        const Bytes expected =
            content(static_cast<std::size_t>(tag) * 5000, static_cast<std::uint64_t>(tag));
        Bytes got(expected.size());
        OK(MP_Recv(got.data(), static_cast<int64_t>(got.size()), 0, tag));
        REQUIRE(got == expected);
      }
    }
  });
}
END_TEST

START_TEST(wildcards_take_messages_of_all_ranks_and_tags_once) {
  run_everywhere(4, [] {
    constexpr int kEach = 50;
    const int me = MP_Myproc();
    if (me == 0) {
      int seen[4] = {};
      for (int i = 0; i < 3 * kEach; ++i) {
        int value[2] = {};
        OK(MP_Recv(value, sizeof value, MP_ANY_SOURCE, MP_ANY_TAG));
        const int from = MP_Get_Last_Source();
        REQUIRE(from >= 1 && from <= 3);
        REQUIRE(value[0] == from && value[1] == seen[from]);  // in the order sent
        REQUIRE(MP_Get_Last_Tag() == 10 * from + value[1] % 7);
        ++seen[from];
      }
      for (int from = 1; from < 4; ++from) REQUIRE(seen[from] == kEach);
    } else {
      for (int i = 0; i < kEach; ++i) {
        const int value[2] = {me, i};
        OK(MP_Send(value, sizeof value, 0, 10 * me + i % 7));
      }
    }
  });
}
END_TEST

START_TEST(large_exchange_in_both_directions_does_not_deadlock) {
  run_everywhere(2, [] {
    constexpr std::size_t kBytes = 12 << 20;
    const int me = MP_Myproc(), other = 1 - me;
    const Bytes mine = content(kBytes, static_cast<std::uint64_t>(me)),
                theirs = content(kBytes, static_cast<std::uint64_t>(other));
    Bytes got(kBytes);
    // Posted beforehand; both blocking sends first (the library's copy is what lets them return);
    // together.
    int in = MP_DONE, out = MP_DONE;
    OK(MP_ARecv(got.data(), kBytes, other, 1, &in));
    OK(MP_ASend(mine.data(), kBytes, other, 1, &out));
    OK(MP_Wait(&out));
    OK(MP_Wait(&in));
    REQUIRE(in == MP_DONE && out == MP_DONE && got == theirs);
    std::fill(got.begin(), got.end(), 0);
    OK(MP_Send(mine.data(), kBytes, other, 2));
    OK(MP_Recv(got.data(), kBytes, other, 2));
    REQUIRE(got == theirs);
    std::fill(got.begin(), got.end(), 0);
    OK(MP_SShift(mine.data(), other, got.data(), other, kBytes, 3));
    REQUIRE(got == theirs);
  });
}
END_TEST

START_TEST(ring_of_shifts_turns) {
  run_everywhere(4, [] {
    const int me = MP_Myproc(), size = MP_Nprocs();
    Bytes data = content(300'000, static_cast<std::uint64_t>(me)), next(data.size());
    for (int i = 0; i < size; ++i) {
      OK(MP_SShift(data.data(), (me + 1) % size, next.data(), (me + size - 1) % size,
                   static_cast<int64_t>(data.size()), i));
      data.swap(next);
    }
    REQUIRE(data == content(300'000, static_cast<std::uint64_t>(me)));
  });
}
END_TEST

START_TEST(sync_holds_everybody_until_the_last_is_there) {
  run_everywhere(3, [] {
    OK(MP_Sync());  // connected
    for (int late = 0; late < 3; ++late) {
      if (MP_Myproc() == late) compute(0.1);
      double entered = seconds();
      OK(MP_Sync());
      const double left = seconds();
      // one clock for all: nobody leaves before the last has entered
      if (MP_Myproc() != late) {
        OK(MP_Recv(&entered, sizeof entered, late, 1));
        REQUIRE(left >= entered);
        continue;
      }
      for (int other = 0; other < 3; ++other)
        if (other != late) OK(MP_Send(&entered, sizeof entered, other, 1));
    }
    for (int i = 0; i < 200; ++i) OK(MP_Sync());
  });
}
END_TEST

START_TEST(test_and_testall_tell_what_is_complete_without_waiting) {
  run_everywhere(2, [] {
    constexpr std::size_t kBytes = 2 << 20;
    const Bytes data = content(kBytes, 1);
    Bytes a(kBytes), b(kBytes);
    int flag = -1;
    if (MP_Myproc() == 0) {
      OK(MP_Recv(nullptr, 0, 1, 9));
      OK(MP_Send(data.data(), kBytes, 1, 1));
      OK(MP_Recv(nullptr, 0, 1, 9));
      OK(MP_Send(data.data(), kBytes, 1, 2));
      return;
    }
    int ids[3];
    OK(MP_ARecv(a.data(), kBytes, 0, 1, &ids[0]));
    OK(MP_ARecv(b.data(), kBytes, 0, 2, &ids[1]));
    ids[2] = MP_DONE;
    OK(MP_Test(&ids[0], &flag));
    REQUIRE(flag == 0 && ids[0] != MP_DONE);
    OK(MP_Testall(3, ids, &flag));
    REQUIRE(flag == 0);
    OK(MP_Send(nullptr, 0, 0, 9));
    const int first = ids[0];
    const double end = seconds() + 20;
    do OK(MP_Test(&ids[0], &flag));
    while (flag == 0 && seconds() < end);
    REQUIRE(flag == 1 && ids[0] == MP_DONE && a == data);
    REQUIRE(MP_Get_Last_Tag() == 1 && MP_Get_Last_Size() == static_cast<int64_t>(kBytes));
    int stale = first;
    REQUIRE(MP_Wait(&stale) == MP_ERR_ARG);
    OK(MP_Testall(3, ids, &flag));
    REQUIRE(flag == 0 && ids[1] != MP_DONE);
    OK(MP_Send(nullptr, 0, 0, 9));
    do OK(MP_Testall(3, ids, &flag));
    while (flag == 0 && seconds() < end);
    REQUIRE(flag == 1 && ids[1] == MP_DONE && b == data);
    OK(MP_Testall(3, ids, &flag));
    REQUIRE(flag == 1);
    OK(MP_Wait(&ids[0]));  // of what is done
  });
}
END_TEST

// After a run of receives from one rank its connection is polled only; probe and test ask epoll.
START_TEST(probe_and_testall_see_what_comes_behind_a_run_of_receives) {
  run_everywhere(2, [] {
    int flag = 0, id = 0;
    std::uint8_t byte = 0;
    if (MP_Myproc() == 0) {
      for (int i = 0; i < 50; ++i) {
        OK(MP_Send(&byte, 1, 1, 1));
        OK(MP_Recv(nullptr, 0, 1, 2));
      }
      OK(MP_Send(&byte, 1, 1, 3));
      OK(MP_Recv(nullptr, 0, 1, 2));
      OK(MP_Send(&byte, 1, 1, 4));
      return;
    }
    for (int i = 0; i < 50; ++i) {
      OK(MP_Recv(&byte, 1, 0, 1));
      OK(MP_Send(nullptr, 0, 0, 2));
    }
    const double end = seconds() + 20;
    do OK(MP_AProbe(-1, 0, 3, &flag));
    while (flag == 0 && seconds() < end);
    REQUIRE(flag == 1);
    OK(MP_Recv(&byte, 1, 0, 3));
    OK(MP_ARecv(&byte, 1, 0, 4, &id));
    OK(MP_Send(nullptr, 0, 0, 2));
    do OK(MP_Testall(1, &id, &flag));
    while (flag == 0 && seconds() < end);
    REQUIRE(flag == 1);
  });
}
END_TEST

START_TEST(probe_tells_of_the_message_that_a_receive_would_take) {
  run_everywhere(2, [] {
    const Bytes data = content(500'000, 3);
    int flag = -1;
    if (MP_Myproc() == 0) {
      OK(MP_Recv(nullptr, 0, 1, 9));
      OK(MP_Send(data.data(), 100, 1, 4));
      OK(MP_Send(data.data(), 500'000, 1, 5));
      return;
    }
    OK(MP_AProbe(-1, MP_ANY_SOURCE, MP_ANY_TAG, &flag));
    REQUIRE(flag == 0);
    OK(MP_Send(nullptr, 0, 0, 9));
    OK(MP_Probe(-1, 0, 5));  // behind the other
    REQUIRE(MP_Get_Last_Tag() == 5 && MP_Get_Last_Source() == 0 && MP_Get_Last_Size() == 500'000);
    OK(MP_AProbe(99, 0, MP_ANY_TAG, &flag));
    REQUIRE(flag == 0);  // it is there, and longer
    REQUIRE(MP_Probe(99, 0, MP_ANY_TAG) == MP_ERR_TRUNCATE);
    OK(MP_AProbe(100, MP_ANY_SOURCE, MP_ANY_TAG, &flag));
    REQUIRE(flag == 1 && MP_Get_Last_Tag() == 4 && MP_Get_Last_Size() == 100);
    OK(MP_AProbe(-1, 1, MP_ANY_TAG, &flag));
    REQUIRE(flag == 0);  // none from ourselves
    Bytes got(500'000);
    OK(MP_Recv(got.data(), 100, 0, 4));
    OK(MP_Probe(500'000, MP_ANY_SOURCE, MP_ANY_TAG));
    OK(MP_Recv(got.data(), 500'000, MP_Get_Last_Source(), MP_Get_Last_Tag()));
    REQUIRE(got == data);
  });
}
END_TEST

START_TEST(receive_behind_unexpected_messages_beyond_the_bound_completes) {
  run_everywhere(2,
                 [] {
                   const Bytes data = content(300'000, 3);
                   if (MP_Myproc() == 0) {
                     int ids[11];
                     for (int i = 0; i < 10; ++i) OK(MP_ASend(data.data(), 300'000, 1, 1, &ids[i]));
                     OK(MP_ASend(data.data(), 1000, 1, 2, &ids[10]));
                     for (int& id : ids) OK(MP_Block(&id));
                     return;
                   }
                   Bytes got(300'000);
                   OK(MP_Recv(got.data(), 1000, MP_ANY_SOURCE, 2));
                   REQUIRE(std::equal(got.begin(), got.begin() + 1000, data.begin()));
                   for (int i = 0; i < 10; ++i) {
                     std::fill(got.begin(), got.end(), 0);
                     OK(MP_Recv(got.data(), 300'000, 0, 1));
                     REQUIRE(got == data);
                   }
                 },
                 {{"LITE_UNEXPECTED_MAX", "64K"}});
}
END_TEST

START_TEST(longer_message_than_the_receive_is_an_error_and_no_hang) {
  run_everywhere(2, [] {
    const Bytes data = content(3 << 20, 3);
    if (MP_Myproc() == 0) {
      OK(MP_Send(data.data(), 3 << 20, 1, 1));
      OK(MP_Send(data.data(), 1000, 1, 1));
      OK(MP_Send(data.data(), 1000, 1, 1));
      return;
    }
    Bytes got(2001, 0xee);
    REQUIRE(MP_Recv(got.data(), 2000, 0, 1) == MP_ERR_TRUNCATE);
    REQUIRE(std::strstr(MP_Last_Error(), "rank 0") != nullptr &&
            std::strstr(MP_Last_Error(), "2000 bytes") != nullptr);
    REQUIRE(std::equal(got.begin(), got.begin() + 2000, data.begin()) && got[2000] == 0xee);
    REQUIRE(MP_Get_Last_Size() == 2000);
    REQUIRE(MP_Recv(nullptr, 0, 0, 1) == MP_ERR_TRUNCATE);
    OK(MP_Recv(got.data(), 1000, 0, 1));
    REQUIRE(std::equal(got.begin(), got.begin() + 1000, data.begin()));
  });
}
END_TEST

START_TEST(a_job_of_one_can_talk_to_itself) {
  run_everywhere(1, [] {
    const Bytes data = content(100'000, 3);
    Bytes got(100'000);
    int id = MP_DONE;
    OK(MP_Send(data.data(), 100'000, 0, 1));
    OK(MP_ARecv(got.data(), 100'000, MP_ANY_SOURCE, 1, &id));
    OK(MP_Wait(&id));
    REQUIRE(got == data);
    OK(MP_Sync());
  });
}
END_TEST

START_TEST(posted_receive_completes_while_the_application_computes) {
  // With sigio and thread, and not with sync: both sides make no call while 32 MB move.
  for (const char* controller : kControllers) {
    run(2, {{"LITE_CONTROLLER", controller}}, [controller] {
      constexpr std::size_t kBytes = 32 << 20;
      Bytes data(kBytes, 1), got(kBytes, 0);
      const int other = 1 - MP_Myproc();
      OK(MP_Sync());
      int in = MP_DONE, out = MP_DONE;
      OK(MP_ARecv(got.data(), kBytes, other, 1, &in));
      OK(MP_Sync());
      OK(MP_ASend(data.data(), kBytes, other, 1, &out));
      compute(1.0);
      const bool moved = got[0] == 1 && got[kBytes - 1] == 1;
      REQUIRE(moved == (std::strcmp(controller, "sync") != 0));
      OK(MP_Wait(&out));
      OK(MP_Wait(&in));
      REQUIRE(got == data);
    });
  }
}
END_TEST

START_TEST(killed_peer_is_an_error_within_seconds_whoever_waits_how) {
  for (const char* controller : kControllers)
    for (int how = 0; how < 7; ++how) {
      Ranks ranks(
          2, {{"LITE_CONTROLLER", controller}},
          [how] {
            OK(MP_Init(nullptr, nullptr));
            // 6: there never was a connection.
            if (how != 6) OK(MP_Sync());
            if (MP_Myproc() == 1) {
              compute(0.05);
              kill(getpid(), SIGKILL);
            }
            Bytes data(64 << 20);
            int id = MP_DONE, flag = 0, rc = MP_OK;
            const double start = seconds();
            switch (how) {
              case 0: rc = MP_Recv(data.data(), 10, 1, 1); break;
              case 1: rc = MP_Recv(data.data(), 10, MP_ANY_SOURCE, MP_ANY_TAG); break;
              case 2: rc = MP_SSend(data.data(), static_cast<int64_t>(data.size()), 1, 1); break;
              case 3: rc = MP_Probe(-1, 1, 1); break;
              case 4: rc = MP_Sync(); break;
              case 5:
                OK(MP_ARecv(data.data(), 10, 1, 1, &id));
                while (rc == MP_OK && flag == 0 && seconds() - start < 10) rc = MP_Test(&id, &flag);
                break;
              case 6: rc = MP_Recv(data.data(), 10, 1, 1); break;
            }
            REQUIRE(rc == MP_ERR_PEER_LOST);
            REQUIRE(std::strstr(MP_Last_Error(), "rank 1 on host") != nullptr);
            REQUIRE(seconds() - start < 5);
            // And from then on.
            REQUIRE(MP_Recv(data.data(), 10, 1, 1) == MP_ERR_PEER_LOST);
            REQUIRE(MP_Send(data.data(), 10, 1, 1) == MP_ERR_PEER_LOST);
            REQUIRE(MP_AProbe(-1, 1, 1, &flag) == MP_ERR_PEER_LOST);
            REQUIRE(MP_Finalize() == MP_ERR_PEER_LOST);
          },
          true);
      ranks.exchange();
      ck_assert_msg(ranks.status(0) == 0, "%s, %d", controller, how);
      const int killed = ranks.status(1);
      ck_assert(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
    }
}
END_TEST

// The kernel says "Bad address" then, which names neither the buffer nor whose fault it is. 64 MB:
// more than any socket buffers take, and more than the receiver keeps before it asks for it. The
// hole does not begin with a frame: the first bytes of one this process may copy itself.
START_TEST(memory_that_has_gone_is_told_as_the_applications_own) {
  constexpr std::size_t kBytes = 64 << 20, kThere = (1 << 20) + 5 * 4096;
  for (const char* controller : kControllers)
    for (const bool sends : {false, true}) {
      int gone[2];  // a byte goes through it when the memory has gone
      ck_assert_int_eq(pipe(gone), 0);
      Ranks ranks(
          2, {{"LITE_CONTROLLER", controller}, {"LITE_UNEXPECTED_MAX", "1m"}},
          [sends, gone] {
            OK(MP_Init(nullptr, nullptr));
            void* const memory =
                mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            REQUIRE(memory != MAP_FAILED);
            int id = MP_DONE, ignored = 0;
            if (MP_Myproc() == 1) {
              OK(MP_Send(&ignored, sizeof ignored, 0, 1));
              pollfd told{gone[0], POLLIN, 0};
              for (int flag; poll(&told, 1, 1) != 1;) (void)MP_AProbe(0, 1, 1, &flag);
              const int rc = sends ? MP_Recv(memory, kBytes, 0, 2) : MP_Send(memory, kBytes, 0, 2);
              REQUIRE(
                  rc == MP_ERR_PEER_LOST ||
                  (!sends &&
                   rc == MP_OK));  // a copy of the end may be on its way when the other end goes
              (void)MP_Finalize();
              _exit(0);
            }
            if (sends) std::memset(memory, 1, kBytes);
            OK(MP_Recv(&ignored, sizeof ignored, 1, 1));
            OK(sends ? MP_ASend(memory, kBytes, 1, 2, &id) : MP_ARecv(memory, kBytes, 1, 2, &id));
            compute(0.1);  // no part of the message may leave meanwhile but what the kernel takes
            REQUIRE(munmap(static_cast<char*>(memory) + kThere, kBytes - kThere) == 0);
            REQUIRE(write(gone[1], "", 1) == 1);
            REQUIRE(MP_Block(&id) == MP_ERR_PEER_LOST);
            const char* const said = MP_Last_Error();
            REQUIRE(std::strstr(said, "rank 1 on host") != nullptr);
            REQUIRE(
                std::strstr(
                    said,
                    sends
                        ? "the application's memory with data for it (the buffer of a pending send"
                        : "the application's memory for data from it (the buffer of a pending "
                          "receive") != nullptr);
            REQUIRE(std::strstr(said, "Bad address") == nullptr);
            REQUIRE(MP_Finalize() == MP_ERR_PEER_LOST);
            _exit(0);
          },
          true);
      ranks.exchange();
      ranks.all_end_well();
      close(gone[0]), close(gone[1]);
    }
}
END_TEST

START_TEST(finalize_drops_what_nobody_received) {
  run_everywhere(3,
                 [] {
                   const Bytes data = content(2 << 20, 3);
                   // Each sends more than the bound to both others, who never ask for it.
                   for (int to = 0; to < 3; ++to)
                     if (to != MP_Myproc())
                       for (int i = 0; i < 4; ++i) OK(MP_Send(data.data(), 2 << 20, to, 1));
                 },
                 {{"LITE_UNEXPECTED_MAX", "64K"}});
}
END_TEST

START_TEST(every_pair_talks_at_once) {
  // Connections are made from both ends at the same time, and bulk goes beside small messages.
  run_everywhere(5, [] {
    const int me = MP_Myproc(), size = MP_Nprocs();
    for (int round = 0; round < 3; ++round) {
      std::vector<Bytes> out, in;
      std::vector<int> ids;
      for (int i = 0; i < size; ++i) {
        const std::size_t bytes = (me + i) % 2 == 0 ? 200'000 : 17;
        out.push_back(content(bytes, static_cast<std::uint64_t>(100 * me + i + round)));
        in.push_back(Bytes(bytes));
      }
      for (int i = 0; i < size; ++i) {
        ids.push_back(MP_DONE);
        OK(MP_ASend(out[static_cast<std::size_t>(i)].data(),
                    static_cast<int64_t>(out[static_cast<std::size_t>(i)].size()), i, round,
                    &ids.back()));
      }
      for (int i = 0; i < size; ++i) {
        ids.push_back(MP_DONE);
        OK(MP_ARecv(in[static_cast<std::size_t>(i)].data(),
                    static_cast<int64_t>(in[static_cast<std::size_t>(i)].size()), i, round,
                    &ids.back()));
      }
      int flag = 0;
      const double end = seconds() + 20;
      while (flag == 0 && seconds() < end)
        OK(MP_Testall(static_cast<int>(ids.size()), ids.data(), &flag));
      REQUIRE(flag == 1);
      for (int i = 0; i < size; ++i) {
        const std::size_t bytes = (me + i) % 2 == 0 ? 200'000 : 17;
        REQUIRE(in[static_cast<std::size_t>(i)] ==
                content(bytes, static_cast<std::uint64_t>(100 * i + me + round)));
      }
    }
  });
}
END_TEST

START_TEST(program_that_brings_its_own_exchange_needs_no_launcher) {
  Ranks ranks(
      2, {},
      [] {
        const int rank = std::atoi(std::getenv("MPLITE_RANK")),
                  fd = std::atoi(std::getenv("MPLITE_FD"));
        for (const char* name : {"MPLITE_RANK", "MPLITE_SIZE", "MPLITE_FD"}) unsetenv(name);
        std::uint8_t mine[MP_ADDRESS_BYTES], table[2 * MP_ADDRESS_BYTES];
        OK(MP_Init_local(mine));
        REQUIRE(send(fd, mine, sizeof mine, 0) == static_cast<ssize_t>(sizeof mine));
        REQUIRE(recv(fd, table, sizeof table, MSG_WAITALL) == static_cast<ssize_t>(sizeof table));
        OK(MP_Init_table(rank, 2, table));
        int value = 40 + rank, got = 0;
        OK(MP_SShift(&value, 1 - rank, &got, 1 - rank, sizeof value, 0));
        REQUIRE(got == 41 - rank);
        OK(MP_Finalize());
        // A second life in the same process.
        OK(MP_Init_local(mine));
        OK(MP_Init_table(0, 1, mine));
        OK(MP_Sync());
        OK(MP_Finalize());
      },
      true);
  ranks.exchange();
  ranks.all_end_well();
}
END_TEST

START_TEST(bad_environment_is_told_by_name) {
  struct Case {
    const char* name;
    const char* value;  // nullptr: not set
    const char* told;
  };
  for (const Case& c :
       {Case{"MPLITE_RANK", nullptr, "MPLITE_RANK is not set"},
        Case{"MPLITE_SIZE", nullptr, "lite-mprun"},
        Case{"MPLITE_FD", nullptr, "MPLITE_FD is not set"},
        Case{"MPLITE_RANK", "2", "MPLITE_RANK=2"}, Case{"MPLITE_RANK", "-1", "MPLITE_RANK=-1"},
        Case{"MPLITE_RANK", "1x", "MPLITE_RANK=1x"}, Case{"MPLITE_SIZE", "0", "MPLITE_SIZE=0"},
        Case{"MPLITE_SIZE", "99999999999", "MPLITE_SIZE"},
        Case{"MPLITE_FD", "999", "MPLITE_FD=999"},
        Case{"LITE_CONTROLLER", "magic", "LITE_CONTROLLER"},
        Case{"LITE_IFACE", "nosuch0", "nosuch0"}}) {
    Ranks ranks(
        2, {},
        [&c] {
          if (c.value != nullptr)
            setenv(c.name, c.value, 1);
          else
            unsetenv(c.name);
          REQUIRE(MP_Init(nullptr, nullptr) != MP_OK);
          REQUIRE(std::strstr(MP_Last_Error(), c.told) != nullptr);
          REQUIRE(MP_Nprocs() == 0 && MP_Myproc() == -1);
          REQUIRE(MP_Sync() == MP_ERR_ARG && std::strstr(MP_Last_Error(), "MP_Init") != nullptr);
        },
        true);
    ranks.all_end_well();
  }
}
END_TEST

START_TEST(launcher_that_goes_away_is_an_error_in_init) {
  Ranks ranks(
      1, {},
      [] {
        REQUIRE(MP_Init(nullptr, nullptr) == MP_ERR_SYSTEM);
        REQUIRE(std::strstr(MP_Last_Error(), "MPLITE_FD") != nullptr);
      },
      true);
  close(ranks.fd[0]);
  ranks.fd[0] = -1;
  ranks.all_end_well();
}
END_TEST

START_TEST(bad_arguments_are_told_and_change_nothing) {
  run(2, {}, [] {
    int id = 12345, flag = 0;
    char byte = 0;
    REQUIRE(MP_Send(&byte, 1, 2, 0) == MP_ERR_ARG &&
            std::strstr(MP_Last_Error(), "rank 2 does not exist") != nullptr);
    REQUIRE(MP_Send(&byte, 1, -1, 0) == MP_ERR_ARG);
    REQUIRE(MP_Send(&byte, -1, 1, 0) == MP_ERR_ARG);
    REQUIRE(MP_Send(nullptr, 1, 1, 0) == MP_ERR_ARG);
    REQUIRE(MP_Send(&byte, 1, 1, -1) == MP_ERR_ARG);
    REQUIRE(MP_Recv(&byte, 1, 2, 0) == MP_ERR_ARG);
    REQUIRE(MP_Wait(&id) == MP_ERR_ARG && id == 12345);
    REQUIRE(MP_Test(&id, &flag) == MP_ERR_ARG);
    REQUIRE(MP_Testall(1, &id, &flag) == MP_ERR_ARG && flag == 0);
    std::uint8_t card[MP_ADDRESS_BYTES];
    REQUIRE(MP_Init_local(card) == MP_ERR_ARG);
  });
}
END_TEST

}  // namespace

int main() { return run_tests("mplite", 240); }
