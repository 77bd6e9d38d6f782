/* The C API for the host's work in a thread of ours: what moves above the device while the
 * application computes. Beside ch_lite.h. Called by ch4/lite_host_work.c, lite_call_lock.c and
 * lite_rma.c; implemented by host_work.cpp. */
#ifndef CH_LITE_HOST_WORK_H_INCLUDED
#define CH_LITE_HOST_WORK_H_INCLUDED

#include "ch_lite/ch_lite.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the host does above the device (schedules of nonblocking collectives, handlers of active
 * messages) must not run in a signal handler, but a thread of ours can run it, so that it moves
 * while the application computes. Either the host bears calls from that thread beside the
 * application's (MPI_THREAD_MULTIPLE inside), or `progress` does nothing while there is one. */
enum {
  LITE_HOST_WORK_NEVER,     /* sync, or sigio with LITE_HOST_THREAD=off */
  LITE_HOST_WORK_ON_DEMAND, /* sigio: a thread that is not there before lite_set_host_work */
  LITE_HOST_WORK_ALWAYS     /* thread: the helper thread */
};
int lite_host_work_kind(void);
/* `progress`: one pass over everything of the host's, lite_progress() and completions included; 0:
 * it could not, and shall not be tried again before lite_host_may_go_on() or an event.
 * `pending`: non-zero while the host has work of its own that no lite_request stands for; called in
 * the thread that leaves MPI and in the helper. Ordinary context, after lite_init_world. LITE_OK,
 * or LITE_ERR_ARG (never), LITE_ERR_NOMEM (no thread could be started): all is as before. */
int lite_set_host_work(int (*progress)(void), int (*pending)(void));
/* sigio: `pending` is asked at every departure from now on, until it says no. `moves`: the work may
 * be able to go on without any event. */
void lite_host_has_work(int moves);
/* Whether the device has done something since this was last asked. */
int lite_host_moved(void);
/* An active message is here that nobody has taken. */
int lite_host_message_due(void);
/* `progress` could do nothing, as the application was in a call, and now could. */
void lite_host_may_go_on(void);
/* Sends, receives, puts and gets under way, or complete and not yet taken. */
unsigned lite_requests_used(void);
/* Around a pass that is not the application's own, beside which it makes no call: what it has done
 * since it was outside stays as it is, and the pass is no wait. */
typedef struct {
  int polls_since_exit, last_call, started;
} lite_host_marks;
static inline lite_host_marks lite_host_pass_begins(void) {
  const lite_host_marks marks = {LITE_HOT_GET(polls_since_exit), LITE_HOT_GET(last_call),
                                 LITE_HOT_GET(started)};
  LITE_HOT_SET(polls_since_exit, 0);
  LITE_HOT_SET(started, 0);
  return marks;
}
static inline void lite_host_pass_ends(const lite_host_marks* marks) {
  LITE_HOT_SET(polls_since_exit, marks->polls_since_exit);
  LITE_HOT_SET(last_call, marks->last_call);
  LITE_HOT_SET(started, marks->started);
}
/* Active messages may come at any time, as from a window: +1, and -1 when that is over. They count
 * as something outstanding. */
void lite_am_expect(int change);
/* The host ends: when it returns, the helper thread is in none of the two functions and never will
 * be again. The caller holds no lock of the host's. */
void lite_host_ending(void);
/* It did not end after all (a session of several): the helper thread may work again. */
void lite_host_resumes(void);

#ifdef __cplusplus
}
#endif
#endif
