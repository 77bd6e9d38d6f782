/* Whose turn it is in MPI (lite_call_lock.c), with threads of the test's in place of the
 * application's and the device's. */
#include <check.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ch_lite/ch4/lite_impl.h"

static int told;
void lite_host_may_go_on(void) { __atomic_fetch_add(&told, 1, __ATOMIC_SEQ_CST); }

static int made_up, calls_within, message_due;
int lite_host_message_due(void) { return message_due; }
void MPIDI_LITE_pass_in_call(void) {
  made_up++;
  if (calls_within) { /* of a callback */
    MPIDI_LITE_call_begins(0);
    MPIDI_LITE_call_ends(0);
  }
}

static int looked_for_kept; /* calls with MPI_THREAD_MULTIPLE, or before and after the locks */
void MPIDI_LITE_pass_for_kept_thread(void) { looked_for_kept++; }

__thread lite_call_state lite_call;

static void short_time(void) {
  const struct timespec moment = {0, 20 * 1000 * 1000};
  nanosleep(&moment, NULL);
}

/* In a thread, as the device does it: whether it had its turn. */
static void* one_turn(void* had) {
  *(bool*)had = MPIDI_LITE_try_turn();
  if (*(bool*)had) {
    MPIDI_LITE_call_begins(0); /* a callback that calls MPI */
    MPIDI_LITE_call_ends(0);
    MPIDI_LITE_end_turn();
  }
  return NULL;
}
static bool has_a_turn(void) {
  pthread_t thread;
  bool had = false;
  pthread_create(&thread, NULL, one_turn, &had);
  pthread_join(thread, NULL);
  return had;
}

/* The call that makes the world communicator, and one that starts what the thread is for. */
static void begin(void) {
  told = made_up = calls_within = message_due = 0;
  MPIDI_LITE_count_calls();
  MPIDI_LITE_call_ends(0);
  ck_assert(MPIDI_LITE_calls_counted);
  MPIDI_LITE_call_begins(0);
  MPIDI_LITE_share_calls();
  MPIDI_LITE_share_calls();
}
static void end(void) {
  MPIDI_LITE_call_begins(0);
  MPIDI_LITE_end_shared_calls();
}

START_TEST(the_thread_has_its_turn_between_calls) {
  begin();
  ck_assert(!has_a_turn()); /* still in the call that has begun it */
  MPIDI_LITE_call_ends(0);
  ck_assert_int_eq(told, 1);
  ck_assert(has_a_turn());
  for (int i = 0; i < 3; i++) {
    MPIDI_LITE_call_begins(0);
    MPIDI_LITE_call_ends(0);
  }
  ck_assert_int_eq(told, 1); /* it has not been turned away since */
  end();
}
END_TEST

/* The application that comes back before the thread is awake does its work, or nobody ever would.
 */
START_TEST(the_next_call_makes_up_for_a_turn) {
  begin();
  MPIDI_LITE_call_ends(0);
  calls_within = 1;
  for (int i = 1; i <= 3; i++) {
    MPIDI_LITE_call_begins(0);
    ck_assert_int_eq(made_up, i - 1);
    ck_assert(!has_a_turn());
    MPIDI_LITE_call_begins(1);
    MPIDI_LITE_call_ends(1);
    MPIDI_LITE_call_begins(0); /* an error handler's */
    MPIDI_LITE_call_ends(0);
    ck_assert_int_eq(made_up, i - 1);
    MPIDI_LITE_call_ends(0);
    MPIDI_LITE_call_begins(1); /* waits for nobody, and does nobody's work */
    MPIDI_LITE_call_ends(1);
    MPIDI_LITE_call_begins(0);
    ck_assert_int_eq(made_up, i);
    MPIDI_LITE_call_ends(0);
  }
  MPIDI_LITE_call_begins(0);
  MPIDI_LITE_call_ends(0);
  ck_assert_int_eq(made_up, 3);
  message_due = 1; /* and the thread was not called */
  MPIDI_LITE_call_begins(0);
  ck_assert_int_eq(made_up, 4);
  MPIDI_LITE_call_ends(0);
  message_due = 0;
  end();
}
END_TEST

START_TEST(a_turn_that_was_had_needs_no_other) {
  begin();
  ck_assert(!has_a_turn());
  MPIDI_LITE_call_ends(0);
  ck_assert(has_a_turn());
  MPIDI_LITE_call_begins(0);
  ck_assert_int_eq(made_up, 0);
  MPIDI_LITE_call_ends(0);
  end();
}
END_TEST

START_TEST(a_call_in_a_call_keeps_it_away_to_the_end_of_the_outer_one) {
  begin();
  MPIDI_LITE_call_begins(0); /* an error handler's */
  MPIDI_LITE_call_ends(0);
  ck_assert(!has_a_turn());
  ck_assert_int_eq(told, 0);
  MPIDI_LITE_call_ends(0);
  ck_assert(has_a_turn());
  end();
}
END_TEST

/* By an exception: the call does not end. */
static MPIDI_LITE_left_calls leave_by_error_handler(void) {
  MPIDI_LITE_call_begins(0);
  MPIDI_LITE_call_begins(0);
  lite_call.kinds = LITE_MAY_NOT_BLOCK;
  return MPIDI_LITE_error_handler_begins();
}
START_TEST(an_error_handler_may_leave_the_call) {
  begin();
  MPIDI_LITE_call_ends(0);
  leave_by_error_handler();
  ck_assert_uint_eq(lite_call.kinds, 0);
  ck_assert(has_a_turn());
  MPIDI_LITE_call_begins(1);
  MPIDI_LITE_error_handler_begins();
  ck_assert(has_a_turn());
  ck_assert(has_a_turn());
  end();
}
END_TEST

START_TEST(the_calls_go_on_when_an_error_handler_has_returned) {
  begin();
  MPIDI_LITE_call_ends(0);
  const MPIDI_LITE_left_calls left = leave_by_error_handler();
  MPIDI_LITE_call_begins(0); /* which it makes */
  ck_assert(!has_a_turn());
  MPIDI_LITE_call_ends(0);
  ck_assert(has_a_turn());
  MPIDI_LITE_error_handler_returned(left);
  ck_assert_uint_eq(lite_call.kinds, LITE_MAY_NOT_BLOCK);
  ck_assert(!has_a_turn());
  MPIDI_LITE_call_ends(0);
  ck_assert(!has_a_turn());
  MPIDI_LITE_call_ends(0);
  ck_assert(has_a_turn());
  MPIDI_LITE_call_begins(1);
  MPIDI_LITE_error_handler_returned(MPIDI_LITE_error_handler_begins());
  ck_assert(!has_a_turn());
  MPIDI_LITE_call_ends(1);
  ck_assert(has_a_turn());
  end();
}
END_TEST

/* One that a turn of ours has called, by a callback, is in the turn. */
START_TEST(an_error_handler_in_a_turn_does_not_end_it) {
  begin();
  MPIDI_LITE_call_ends(0);
  ck_assert(MPIDI_LITE_try_turn());
  MPIDI_LITE_error_handler_returned(leave_by_error_handler());
  MPIDI_LITE_call_begins(0); /* no wait for ourselves */
  MPIDI_LITE_call_ends(0);
  ck_assert(!has_a_turn());
  MPIDI_LITE_end_turn();
  ck_assert(has_a_turn());
  end();
}
END_TEST

static int in_turn;
static void* long_turn(void* arg) {
  (void)arg;
  if (MPIDI_LITE_try_turn()) {
    __atomic_store_n(&in_turn, 1, __ATOMIC_SEQ_CST);
    short_time();
    __atomic_store_n(&in_turn, 0, __ATOMIC_SEQ_CST);
    MPIDI_LITE_end_turn();
  }
  return NULL;
}
START_TEST(a_call_waits_for_the_end_of_a_turn) {
  pthread_t thread;
  begin();
  MPIDI_LITE_call_ends(0);
  pthread_create(&thread, NULL, long_turn, NULL);
  while (__atomic_load_n(&in_turn, __ATOMIC_SEQ_CST) == 0) sched_yield();
  MPIDI_LITE_call_begins(0);
  ck_assert_int_eq(__atomic_load_n(&in_turn, __ATOMIC_SEQ_CST), 0);
  MPIDI_LITE_call_ends(0);
  pthread_join(thread, NULL);
  end();
}
END_TEST

/* A thread that takes one turn after the other does not keep the application out. */
static int over;
static void* greedy(void* arg) {
  (void)arg;
  while (__atomic_load_n(&over, __ATOMIC_SEQ_CST) == 0)
    if (MPIDI_LITE_try_turn()) {
      for (volatile int i = 0; i < 1000; i++) continue;
      MPIDI_LITE_end_turn();
    }
  return NULL;
}
static int shared_count;
START_TEST(calls_and_turns_exclude_each_other) {
  pthread_t thread;
  begin();
  MPIDI_LITE_call_ends(0);
  over = 0;
  pthread_create(&thread, NULL, greedy, NULL);
  for (int i = 0; i < 20000; i++) {
    MPIDI_LITE_call_begins(0);
    shared_count++;
    MPIDI_LITE_call_ends(0);
  }
  __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  end();
}
END_TEST

START_TEST(nobody_is_counted_before_and_all_are_after) {
  ck_assert(!MPIDI_LITE_calls_counted);
  MPIDI_LITE_call_ends(0); /* of MPI_Init, and of one that was begun before it */
  begin();
  MPIDI_LITE_call_ends(0);
  MPIDI_LITE_call_ends(0);
  ck_assert(has_a_turn());
  end();
  MPIDI_LITE_call_ends(0);
  begin(); /* a session after the end */
  ck_assert(!has_a_turn());
  MPIDI_LITE_call_ends(0);
  ck_assert(has_a_turn());
  end();
}
END_TEST

/* A thread of the application's in a function that any thread may call, while another one is in a
 * call for long. */
static void* brief_call(void* arg) {
  MPIDI_LITE_call_begins(1);
  MPIDI_LITE_call_begins(1);
  MPIDI_LITE_call_ends(1);
  *(bool*)arg = has_a_turn();
  MPIDI_LITE_call_ends(1);
  return NULL;
}
START_TEST(functions_for_any_thread_wait_for_turns_and_not_for_calls) {
  pthread_t thread;
  bool had = true;
  begin();
  pthread_create(&thread, NULL, brief_call, &had); /* it would hang */
  pthread_join(thread, NULL);
  ck_assert(!had);
  MPIDI_LITE_call_ends(0);
  ck_assert(has_a_turn());
  pthread_create(&thread, NULL, brief_call, &had);
  pthread_join(thread, NULL);
  ck_assert(!had); /* no turn beside it */
  ck_assert(has_a_turn());
  MPIDI_LITE_call_begins(1); /* a handler that it calls makes a call */
  MPIDI_LITE_call_begins(0);
  MPIDI_LITE_call_ends(0);
  MPIDI_LITE_call_ends(1);
  MPIDI_LITE_call_begins(0); /* and the other way round */
  MPIDI_LITE_call_begins(1);
  MPIDI_LITE_call_ends(1);
  MPIDI_LITE_call_ends(0);
  ck_assert(has_a_turn());
  pthread_create(&thread, NULL, long_turn, NULL);
  while (__atomic_load_n(&in_turn, __ATOMIC_SEQ_CST) == 0) sched_yield();
  MPIDI_LITE_call_begins(1);
  ck_assert_int_eq(__atomic_load_n(&in_turn, __ATOMIC_SEQ_CST), 0);
  MPIDI_LITE_call_ends(1);
  pthread_join(thread, NULL);
  end();
}
END_TEST

/* Which calls do what: names that begin alike. */
START_TEST(calls_are_told_by_their_whole_names) {
  static const char* const turns[] = {"internal_Get",
                                      "internal_Get_c",
                                      "internal_Get_accumulate",
                                      "internal_Get_accumulate_c",
                                      "internal_Get_address",
                                      "internal_Rget",
                                      "internal_Session_finalize",
                                      "internal_Session_flush_buffer",
                                      "internal_Session_attach_buffer",
                                      "internal_Comm_free",
                                      "internal_Test",
                                      "internal_Topo_test",
                                      "internal_Type_free",
                                      "internalX_Stream_isend",
                                      "internal_File_create_errhandler",
                                      "internal_File_set_errhandler",
                                      "internal_Finalize"};
  static const char* const brief[] = {"internal_Info_create",           "internal_T_pvar_read",
                                      "internal_Errhandler_free",       "internal_Error_string",
                                      "internal_Session_init",          "internal_Session_get_info",
                                      "internal_Session_set_errhandler"};
  static const char* const none[] = {"internal_Wtime",         "internal_Abort",
                                     "internal_Comm_rank",     "internal_Get_version",
                                     "internal_Query_thread",  "internal_Status_set_elements",
                                     "internal_File_write_at", "internal_File_get_size"};
  for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++)
    ck_assert_msg(lite_takes_turns(turns[i]) && !lite_waits_for_nobody(turns[i]), "%s", turns[i]);
  for (size_t i = 0; i < sizeof brief / sizeof brief[0]; i++)
    ck_assert_msg(lite_takes_turns(brief[i]) && lite_waits_for_nobody(brief[i]), "%s", brief[i]);
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
    ck_assert_msg(!lite_takes_turns(none[i]), "%s", none[i]);
}
END_TEST

/* The name of a binding's function as its entry keeps it. */
__thread lite_call_state lite_call __attribute__((tls_model("initial-exec")));
#define BINDING(function)                                                             \
  static void function(void) {                                                        \
    if (lite_is_named(__func__)) lite_call.name = __func__ + sizeof("internal_") - 1; \
  }
BINDING(internal_Recv)
BINDING(internal_Type_size)
BINDING(internalX_Stream_isend)
BINDING(f)
START_TEST(calls_that_may_wait_say_their_names) {
  static const char* const named[] = {
      "internal_Recv",       "internal_Get",          "internal_Get_c",
      "internal_Waitall",    "internal_Comm_dup",     "internal_Barrier",
      "internal_Finalize",   "internal_Win_lock",     "internal_Probe",
      "internal_Comm_spawn", "internal_Win_complete", "internal_Get_accumulate"};
  static const char* const none[] = {"internal_Comm_rank",      "internal_Type_get_extent",
                                     "internal_Wtime",          "internal_Op_free",
                                     "internal_Test",           "internal_Comm_get_attr",
                                     "internal_Error_string",   "internal_Get_count",
                                     "internal_Get_elements_x", "internal_Iprobe",
                                     "internal_Get_address",    "internalX_Async_start",
                                     "internal_Pack_c"};
  for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
    ck_assert_msg(lite_is_named(named[i]), "%s", named[i]);
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
    ck_assert_msg(!lite_is_named(none[i]), "%s", none[i]);
  internal_Recv();
  internal_Type_size(); /* an operation of the application's, in the middle of it */
  internalX_Stream_isend();
  f();
  ck_assert_str_eq(lite_call.name, "Recv");
}
END_TEST

/* The entry and exit of a brief call in another thread, with MPI's end and a new session between.
 */
static int in_brief;
static void* brief_call_over_the_end(void* arg) {
  (void)arg;
  MPIDI_LITE_call_begins(1);
  __atomic_store_n(&in_brief, 1, __ATOMIC_SEQ_CST);
  short_time();
  if (MPIDI_LITE_calls_counted) MPIDI_LITE_call_ends(1);
  return NULL;
}
START_TEST(a_brief_call_beside_the_end_leaves_no_lock) {
  pthread_t thread;
  begin();
  MPIDI_LITE_call_ends(0);
  in_brief = 0;
  pthread_create(&thread, NULL, brief_call_over_the_end, NULL);
  while (__atomic_load_n(&in_brief, __ATOMIC_SEQ_CST) == 0) sched_yield();
  end();
  pthread_join(thread, NULL);
  MPIDI_LITE_count_calls();
  MPIDI_LITE_share_calls();
  MPIDI_LITE_call_ends(0);
  ck_assert(has_a_turn());
  end();
}
END_TEST

/* With MPI_THREAD_MULTIPLE. */
START_TEST(without_locks_the_outermost_call_looks_for_what_the_thread_is_kept_from) {
  MPIDI_LITE_count_calls();
  MPIDI_LITE_call_ends(0);
  for (int i = 1; i <= 3; i++) {
    MPIDI_LITE_call_begins(0);
    ck_assert_int_eq(looked_for_kept, i);
    MPIDI_LITE_call_begins(0); /* of a callback */
    MPIDI_LITE_call_ends(0);
    ck_assert_int_eq(looked_for_kept, i);
    MPIDI_LITE_call_ends(0);
  }
  ck_assert_int_eq(made_up, 0);
}
END_TEST

static void* turn_for_long(void* arg) {
  (void)arg;
  if (MPIDI_LITE_try_turn()) {
    __atomic_store_n(&in_turn, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&over, __ATOMIC_SEQ_CST) == 0) short_time();
    MPIDI_LITE_end_turn();
  }
  return NULL;
}
START_TEST(the_child_of_a_fork_does_not_wait_for_a_thread_that_it_has_not) {
  pthread_t thread;
  int status = -1;
  begin();
  MPIDI_LITE_call_ends(0);
  over = in_turn = 0;
  pthread_create(&thread, NULL, turn_for_long, NULL);
  while (__atomic_load_n(&in_turn, __ATOMIC_SEQ_CST) == 0) sched_yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    MPIDI_LITE_call_begins(0);
    MPIDI_LITE_call_ends(0);
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  in_turn = 0;
  end();
}
END_TEST

int main(void) {
  Suite* s = suite_create("call_lock");
  TCase* tc = tcase_create("turns");
  tcase_set_timeout(tc, 60);
  tcase_add_test(tc, the_thread_has_its_turn_between_calls);
  tcase_add_test(tc, the_next_call_makes_up_for_a_turn);
  tcase_add_test(tc, a_turn_that_was_had_needs_no_other);
  tcase_add_test(tc, a_call_in_a_call_keeps_it_away_to_the_end_of_the_outer_one);
  tcase_add_test(tc, an_error_handler_may_leave_the_call);
  tcase_add_test(tc, the_calls_go_on_when_an_error_handler_has_returned);
  tcase_add_test(tc, an_error_handler_in_a_turn_does_not_end_it);
  tcase_add_test(tc, a_call_waits_for_the_end_of_a_turn);
  tcase_add_test(tc, calls_and_turns_exclude_each_other);
  tcase_add_test(tc, nobody_is_counted_before_and_all_are_after);
  tcase_add_test(tc, functions_for_any_thread_wait_for_turns_and_not_for_calls);
  tcase_add_test(tc, a_brief_call_beside_the_end_leaves_no_lock);
  tcase_add_test(tc, without_locks_the_outermost_call_looks_for_what_the_thread_is_kept_from);
  tcase_add_test(tc, calls_are_told_by_their_whole_names);
  tcase_add_test(tc, calls_that_may_wait_say_their_names);
  tcase_add_test(tc, the_child_of_a_fork_does_not_wait_for_a_thread_that_it_has_not);
  suite_add_tcase(s, tc);
  SRunner* runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
