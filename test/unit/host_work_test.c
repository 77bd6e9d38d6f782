/* When the host's progress runs in a thread of the device's, and what it does there
 * (lite_host_work.c), against stand-ins for the host and for the device's thread. */
#include <check.h>

#include "ch_lite/ch4/lite_impl.h"

/* ---- the host ---- */

MPIR_Process_t MPIR_Process;
MPIR_ThreadInfo_t MPIR_ThreadInfo;
MPIDI_CH4_Global_t MPIDI_global;
static int schedules, host_passes, device_passes, fails_with;
int MPIDU_Sched_are_pending(void) { return schedules; }
int MPII_TSP_scheds_are_pending(void) { return 0; }
int MPID_Progress_test(void* state) {
  host_passes++;
  ck_assert_int_eq(MPIDI_LITE_take_kept_error(), MPI_SUCCESS);
  ck_assert_int_eq(lite_hot.polls_since_exit, 0);
  lite_hot.polls_since_exit++;
  lite_hot.started = lite_hot.last_call = LITE_CALL_OTHER;
  return fails_with;
}
int MPIDI_LITE_progress(MPIDI_LITE_PROGRESS_PARAMETERS) {
  device_passes++;
  return MPI_SUCCESS;
}
void host_enters(const MPID_Thread_mutex_t* mutex) { (void)mutex; }
void* host_calloc(size_t count, size_t size) { return calloc(count, size); }
void host_free(void* block) { free(block); }
static int delete_nothing(int handle, void* attributes) { return MPI_SUCCESS; }

/* ---- the device ---- */

static int told_that_it_moves, moves_left;
static int kind, told_of_work, used, threads; /* threads: that the device can start */
static int (*progress)(void);
static int (*pending)(void);
int lite_host_work_kind(void) { return kind; }
int lite_set_host_work(int (*theirs)(void), int (*of_theirs)(void)) {
  if (threads == 0) return LITE_ERR_NOMEM;
  progress = theirs;
  pending = of_theirs;
  return LITE_OK;
}
__thread lite_call_state lite_call __attribute__((tls_model("initial-exec")));
lite_hot_state lite_hot;
void lite_host_lets_go_slow(void) {}
unsigned lite_requests_used(void) { return (unsigned)used; }
void lite_host_has_work(int moves) {
  told_of_work++;
  told_that_it_moves = moves;
}
static int message_due;
int lite_host_message_due(void) { return message_due; }
/* For so many passes. */
int lite_host_moved(void) { return moves_left > 0 ? moves_left-- : 0; }
void lite_host_ending(void) { progress = NULL; }
void lite_host_resumes(void) { ck_assert_ptr_nonnull(pending); }

/* ---- the calls' lock ---- */

static int counted, shared, turns;
void MPIDI_LITE_count_calls(void) { counted = 1; }
void MPIDI_LITE_share_calls(void) { shared = 1; }
void MPIDI_LITE_end_shared_calls(void) { shared = 0; }
bool MPIDI_LITE_try_turn(void) { return turns > 0; }
void MPIDI_LITE_end_turn(void) {}

/* ---- */

static void begin(int the_kind, int level) {
  kind = the_kind;
  threads = turns = 1;
  told_that_it_moves = moves_left = used = 0;
  schedules = told_of_work = host_passes = device_passes = counted = shared = 0;
  fails_with = MPI_SUCCESS;
  progress = NULL;
  pending = NULL;
  MPIR_Process.attr_free = NULL;
  MPIR_ThreadInfo.thread_provided = level;
  MPIDI_LITE_start_host_work();
}
static void start_schedule(MPIR_Op* op) {
  MPIDI_LITE_schedule_begins(LITE_STARTS_ONE);
  schedules++;
  if (op != NULL) op->ref_count++;
  MPIDI_LITE_schedule_begun(LITE_STARTS_ONE);
}
static void end_schedule(MPIR_Op* op) {
  schedules--;
  if (op != NULL) op->ref_count--;
}
/* Whether the thread moves schedules: it takes a pass. */
static bool moves_schedules(void) {
  const int host = host_passes, device = device_passes;
  progress();
  ck_assert_int_eq(host_passes - host + device_passes - device, 1);
  return host_passes > host;
}

START_TEST(without_such_a_thread_nothing_is_done) {
  MPIR_Op op = {.ref_count = 1};
  begin(LITE_HOST_WORK_NEVER, MPI_THREAD_FUNNELED);
  ck_assert_int_eq(MPIDI_LITE_op_commit_hook(&op), MPI_SUCCESS);
  start_schedule(&op);
  MPIDI_LITE_object_is_freed();
  ck_assert(counted == 0 && shared == 0 && progress == NULL && told_of_work == 0);
  MPIDI_LITE_op_free_hook(&op);
  MPIDI_LITE_end_host_work();
}
END_TEST

START_TEST(on_demand_it_begins_with_the_first_schedule_that_is_left) {
  begin(LITE_HOST_WORK_ON_DEMAND, MPI_THREAD_FUNNELED);
  ck_assert(counted == 1 && shared == 0 && progress == NULL);
  MPIDI_LITE_schedule_begins(LITE_STARTS_ONE);
  MPIDI_LITE_schedule_begun(LITE_STARTS_ONE); /* it is complete already */
  ck_assert(shared == 0 && progress == NULL);
  start_schedule(NULL);
  ck_assert(shared == 1 && progress != NULL && told_of_work == 1 && pending() == 1);
  ck_assert(moves_schedules());
  end_schedule(NULL);
  ck_assert_int_eq(pending(), 0);
  MPIDI_LITE_end_host_work();
  ck_assert(shared == 0 && progress == NULL);
  MPIDI_LITE_resume_host_work();
  ck_assert(shared == 1);
}
END_TEST

START_TEST(a_call_does_what_the_thread_could_not_and_calls_nobody) {
  MPIR_Op op = {.ref_count = 1};
  begin(LITE_HOST_WORK_ON_DEMAND, MPI_THREAD_FUNNELED);
  start_schedule(NULL);
  host_passes = 0;
  moves_left = 4; /* the first one is of what was before */
  lite_hot.polls_since_exit = 7;
  MPIDI_LITE_pass_in_call();
  ck_assert_int_eq(host_passes, 4);
  ck_assert_int_eq(lite_hot.polls_since_exit, 7); /* it is no wait of the application's */
  moves_left = 1000;
  MPIDI_LITE_pass_in_call();
  ck_assert_int_eq(host_passes, 20); /* and ends */
  moves_left = 0;
  ck_assert_int_eq(MPIDI_LITE_op_commit_hook(&op), MPI_SUCCESS);
  start_schedule(&op);
  host_passes = device_passes = 0;
  MPIDI_LITE_pass_in_call();
  ck_assert_int_eq(host_passes, 0);
  ck_assert_int_eq(device_passes, 1);
  MPIDI_LITE_op_free_hook(&op);
  MPIDI_LITE_end_host_work();
}
END_TEST

START_TEST(what_a_call_can_finish_is_not_left_to_the_thread) {
  begin(LITE_HOST_WORK_ON_DEMAND, MPI_THREAD_FUNNELED);
  start_schedule(NULL);
  ck_assert_int_eq(host_passes, 1);
  ck_assert_int_eq(told_that_it_moves, 0);
  host_passes = 0;
  moves_left = 4; /* the first one is of the call itself */
  start_schedule(NULL);
  ck_assert_int_eq(host_passes, 4);
  ck_assert_int_eq(told_that_it_moves, 0);
  moves_left = 1000;
  start_schedule(NULL);
  ck_assert_int_eq(told_that_it_moves, 1);
  begin(LITE_HOST_WORK_ALWAYS, MPI_THREAD_FUNNELED);
  start_schedule(NULL);
  ck_assert_int_eq(host_passes, 0);
}
END_TEST

START_TEST(it_waits_for_its_turn) {
  begin(LITE_HOST_WORK_ALWAYS, MPI_THREAD_FUNNELED);
  ck_assert(shared == 1);
  turns = 0;
  progress();
  ck_assert_int_eq(host_passes + device_passes, 0);
  turns = 1;
  ck_assert(moves_schedules());
}
END_TEST

START_TEST(without_memory_for_a_thread_all_is_as_before) {
  begin(LITE_HOST_WORK_ON_DEMAND, MPI_THREAD_FUNNELED);
  threads = 0;
  start_schedule(NULL);
  start_schedule(NULL);
  ck_assert(progress == NULL && told_of_work == 0);
}
END_TEST

START_TEST(operations_of_the_application_are_called_in_its_calls_only) {
  MPIR_Op op = {.ref_count = 1};
  begin(_i == 0 ? LITE_HOST_WORK_ON_DEMAND : LITE_HOST_WORK_ALWAYS, MPI_THREAD_FUNNELED);
  ck_assert_int_eq(MPIDI_LITE_op_commit_hook(&op), MPI_SUCCESS);
  start_schedule(NULL);
  ck_assert(moves_schedules());
  start_schedule(&op);
  ck_assert(!moves_schedules());
  ck_assert_int_eq(pending(), 0);
  end_schedule(&op);
  start_schedule(NULL); /* the first one is still under way: nobody knows whose is left */
  ck_assert(!moves_schedules());
  end_schedule(NULL);
  end_schedule(NULL);
  start_schedule(NULL);
  ck_assert(moves_schedules());
  MPIDI_LITE_schedule_begins(
      LITE_STARTS_PERSISTENT); /* a persistent one has had its operation since it was made */
  MPIDI_LITE_schedule_begun(LITE_STARTS_PERSISTENT);
  ck_assert(!moves_schedules());
  MPIDI_LITE_forget_host_work();
}
END_TEST

/* Several threads start schedules at a time. */
START_TEST(with_several_threads_any_operation_of_the_application_counts) {
  MPIR_Op op = {.ref_count = 1};
  begin(LITE_HOST_WORK_ON_DEMAND, MPI_THREAD_MULTIPLE);
  ck_assert(counted == 1 && shared == 0);
  start_schedule(NULL);
  ck_assert(moves_schedules());
  ck_assert_int_eq(MPIDI_LITE_op_commit_hook(&op), MPI_SUCCESS);
  start_schedule(NULL);
  ck_assert(!moves_schedules());
  MPIDI_LITE_op_free_hook(&op);
  start_schedule(NULL);
  ck_assert(!moves_schedules());
  schedules = 0;
  start_schedule(NULL);
  ck_assert(moves_schedules());
  begin(LITE_HOST_WORK_ALWAYS, MPI_THREAD_MULTIPLE); /* the helper thread is one of them */
  ck_assert_int_eq(MPIDI_LITE_op_commit_hook(&op), MPI_SUCCESS);
  start_schedule(&op);
  ck_assert(moves_schedules());
  ck_assert_int_eq(shared, 0);
  MPIDI_LITE_forget_host_work();
}
END_TEST

/* Whether the thread does nothing at all. */
static bool does_nothing(void) {
  const int passes = host_passes + device_passes;
  return progress() == 0 && host_passes + device_passes == passes;
}
START_TEST(attributes_are_deleted_in_the_applications_calls_only) {
  begin(LITE_HOST_WORK_ON_DEMAND, _i == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
  start_schedule(NULL);
  MPIDI_LITE_object_is_freed();
  ck_assert(moves_schedules()); /* there are none */
  MPIR_Process.attr_free = delete_nothing;
  MPIDI_LITE_object_is_freed();
  ck_assert(does_nothing());
  end_schedule(NULL);
  ck_assert(moves_schedules());
  used = 1; /* a message holds the last reference */
  MPIDI_LITE_object_is_freed();
  ck_assert(does_nothing());
  host_passes = 0;
  MPIDI_LITE_pass_in_call();
  ck_assert_int_eq(host_passes, 1); /* which is one of the application's calls */
  used = 0;
  ck_assert(moves_schedules());
  MPIDI_LITE_object_is_freed(); /* nothing holds it */
  ck_assert(moves_schedules());
  MPIR_Process.attr_free = NULL;
  MPIDI_LITE_destructor_is_made();
  used = 1;
  MPIDI_LITE_object_is_freed();
  ck_assert(does_nothing());
  MPIDI_LITE_forget_host_work();
}
END_TEST

/* With MPI_THREAD_MULTIPLE, where calls have no lock: what has come for the host is handled in the
 * next call, while the thread may not. */
START_TEST(what_the_thread_is_kept_from_the_next_call_does) {
  begin(LITE_HOST_WORK_ON_DEMAND, _i == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
  MPIR_ThreadInfo.isThreaded = 1;
  MPIDI_global.m[0].owner = 1;
  ck_assert_int_eq(counted, 1);
  start_schedule(NULL);
  host_passes = 0;
  MPIR_Process.attr_free = delete_nothing;
  message_due = 1;
  MPIDI_LITE_pass_for_kept_thread();
  ck_assert_int_eq(host_passes, 0); /* it is kept from nothing */
  MPIDI_LITE_object_is_freed();
  message_due = 0;
  MPIDI_LITE_pass_for_kept_thread();
  ck_assert_int_eq(host_passes, 0);
  message_due = 1;
  MPIDI_global.m[0].owner = 0; /* a binding that takes no lock */
  MPIDI_LITE_pass_for_kept_thread();
  ck_assert_int_eq(host_passes, 0);
  MPIDI_global.m[0].owner = 1;
  MPIDI_LITE_pass_for_kept_thread();
  ck_assert_int_eq(host_passes, _i); /* elsewhere the calls' lock sees to that */
  MPIDI_LITE_end_host_work();
  MPIDI_LITE_pass_for_kept_thread();
  ck_assert_int_eq(host_passes, _i);
  message_due = 0;
}
END_TEST

START_TEST(a_schedule_that_waits_moves_in_the_applications_calls_only) {
  begin(LITE_HOST_WORK_ON_DEMAND, _i == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
  start_schedule(NULL);
  host_passes = 0;
  MPIDI_LITE_schedule_begins(LITE_STARTS_COMMUNICATOR);
  schedules++;
  MPIDI_LITE_schedule_begun(LITE_STARTS_COMMUNICATOR);
  ck_assert_int_eq(host_passes, 0); /* nor at its start */
  ck_assert(!moves_schedules());
}
END_TEST

START_TEST(with_threads_in_one_communicator_it_ends_for_good) {
  begin(LITE_HOST_WORK_ON_DEMAND, MPI_THREAD_FUNNELED);
  start_schedule(NULL);
  MPIDI_LITE_give_up_host_work();
  ck_assert(shared == 0 && progress == NULL);
  start_schedule(NULL);
  MPIDI_LITE_resume_host_work();
  ck_assert(shared == 0 && progress == NULL);
}
END_TEST

/* A callback of the end starts a schedule. */
START_TEST(nothing_begins_while_mpi_ends) {
  begin(LITE_HOST_WORK_ON_DEMAND, MPI_THREAD_FUNNELED);
  MPIDI_LITE_end_host_work();
  start_schedule(NULL);
  ck_assert(shared == 0 && progress == NULL && told_of_work == 0);
  MPIDI_LITE_resume_host_work();
  start_schedule(NULL);
  ck_assert(shared == 1 && progress != NULL);
}
END_TEST

START_TEST(functions_that_progress_calls_are_called_in_the_applications_calls_only) {
  begin(LITE_HOST_WORK_ON_DEMAND, MPI_THREAD_FUNNELED);
  MPIDI_LITE_progress_is_used();
  start_schedule(NULL);
  ck_assert(!moves_schedules());
  end_schedule(NULL);
  start_schedule(NULL);
  ck_assert(!moves_schedules());
}
END_TEST

START_TEST(an_error_of_a_pass_is_the_next_polls) {
  begin(LITE_HOST_WORK_ALWAYS, _i == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
  ck_assert_int_eq(MPIDI_LITE_take_kept_error(), MPI_SUCCESS);
  fails_with = 15;
  ck_assert_int_eq(progress(), 0);
  fails_with = MPI_SUCCESS;
  ck_assert_int_eq(progress(), 1); /* it is not the next pass's */
  ck_assert_int_eq(MPIDI_LITE_take_kept_error(), 15);
  ck_assert_int_eq(MPIDI_LITE_take_kept_error(), MPI_SUCCESS);
}
END_TEST

/* What the device looks at to tell a wait from a look. */
START_TEST(a_pass_leaves_no_trace_of_its_polls) {
  begin(LITE_HOST_WORK_ON_DEMAND, MPI_THREAD_FUNNELED);
  lite_hot.polls_since_exit = 7;
  lite_hot.last_call = LITE_CALL_SEND;
  lite_hot.started = 1;
  start_schedule(NULL);
  progress();
  ck_assert_int_eq(host_passes, 2);
  ck_assert_int_eq(lite_hot.polls_since_exit, 7);
  ck_assert_int_eq(lite_hot.last_call, LITE_CALL_SEND);
  ck_assert_int_eq(lite_hot.started, 1);
}
END_TEST

int main(void) {
  Suite* suite = suite_create("host_work");
  TCase* tests = tcase_create("host_work");
  tcase_add_test(tests, without_such_a_thread_nothing_is_done);
  tcase_add_test(tests, on_demand_it_begins_with_the_first_schedule_that_is_left);
  tcase_add_test(tests, a_call_does_what_the_thread_could_not_and_calls_nobody);
  tcase_add_test(tests, what_a_call_can_finish_is_not_left_to_the_thread);
  tcase_add_test(tests, it_waits_for_its_turn);
  tcase_add_test(tests, without_memory_for_a_thread_all_is_as_before);
  tcase_add_loop_test(tests, operations_of_the_application_are_called_in_its_calls_only, 0, 2);
  tcase_add_test(tests, with_several_threads_any_operation_of_the_application_counts);
  tcase_add_loop_test(tests, attributes_are_deleted_in_the_applications_calls_only, 0, 2);
  tcase_add_loop_test(tests, what_the_thread_is_kept_from_the_next_call_does, 0, 2);
  tcase_add_loop_test(tests, a_schedule_that_waits_moves_in_the_applications_calls_only, 0, 2);
  tcase_add_test(tests, with_threads_in_one_communicator_it_ends_for_good);
  tcase_add_test(tests, nothing_begins_while_mpi_ends);
  tcase_add_test(tests, a_pass_leaves_no_trace_of_its_polls);
  tcase_add_test(tests, functions_that_progress_calls_are_called_in_the_applications_calls_only);
  tcase_add_loop_test(tests, an_error_of_a_pass_is_the_next_polls, 0, 2);
  suite_add_tcase(suite, tests);
  SRunner* runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  const int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
