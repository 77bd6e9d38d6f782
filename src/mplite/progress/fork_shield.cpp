// A child made by fork() and its parent's job: what keeps them apart.
#include "mplite/progress/fork_shield.h"

#include <pthread.h>

#include "mplite/engine/engine.h"

namespace mplite {
namespace {

struct Shield {
  Engine* engine = nullptr;
  void (*in_child)(void*) = nullptr;
  void* arg = nullptr;
  bool registered = false;  // for ever: pthread_atfork has no way back
};
Shield g_shield;
// Of the fork under way in this thread: whether the lists that name our descriptors are whole.
thread_local bool t_gate_taken = false;

// The gate, so that nobody is in the middle of something when the memory is copied. Not at any
// price: whoever has it may wait for a lock that another library's handler of this kind took before
// us.
constexpr int kPatienceMs = 100;

void before_fork() {
  if (g_shield.engine != nullptr) t_gate_taken = g_shield.engine->gate().enter_within(kPatienceMs);
}

void after_fork_in_parent() {
  if (t_gate_taken) g_shield.engine->gate().leave_undrained();
  t_gate_taken = false;
}

void after_fork_in_child() {
  if (g_shield.engine == nullptr) return;
  g_shield.engine->gate().close_in_child(t_gate_taken);
  if (t_gate_taken) g_shield.engine->disown();
  t_gate_taken = false;
  if (g_shield.in_child != nullptr) g_shield.in_child(g_shield.arg);
}

}  // namespace

void fork_shield_raise(Engine& engine, void (*in_child)(void*), void* arg) {
  if (!g_shield.registered)
    g_shield.registered =
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
  g_shield.engine = &engine;
  g_shield.in_child = in_child;
  g_shield.arg = arg;
}

void fork_shield_lower(const Engine& engine) {
  if (g_shield.engine != &engine) return;
  g_shield.engine = nullptr;
  g_shield.in_child = nullptr;
}

}  // namespace mplite
