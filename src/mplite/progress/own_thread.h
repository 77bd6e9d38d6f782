// A thread of ours in a process that belongs to the application: how it is started, how code tells
// that it runs in one, and the word that it sleeps on.
#pragma once
#include <pthread.h>
#include <time.h>

#include <atomic>

#include "mplite/base/signal_safe.h"

namespace mplite {

// All signals are blocked in it: the application's handlers stay in the application's threads. Its
// policy is the ordinary one, if that may be had, whatever the caller's is.
// Returns 0 or an error number. `main` begins with enter_own_thread().
int start_own_thread(pthread_t* thread, void* (*main)(void* arg), void* arg);
void enter_own_thread();
// Whether the caller is such a thread: it has no application to wait for.
bool in_own_thread();

// Sleeps while `word` is `value`, `timeout` (relative; null: for ever) at most.
void sleep_on(std::atomic<int>& word, int value, const timespec* timeout = nullptr);
// Wakes the one thread that sleeps on it.
void wake_sleeper(std::atomic<int>& word) MPLITE_SIGNAL_SAFE;

}  // namespace mplite
