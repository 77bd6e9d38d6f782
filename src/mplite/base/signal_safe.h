// Marks what the signal handler reaches. Included by every file of the engine and the device.
#pragma once

// A function with this mark neither allocates nor locks nor uses stdio; errno may change (the
// handler's first line saves it). The mark is for readers; the proof is test/signal/closure_check,
// which walks what the handler calls in the linked library.
#define MPLITE_SIGNAL_SAFE

// A function that the handler's code names but only ordinary context calls (behind Engine::async()
// or MPID_ChannelInHandler()): it may allocate. Not inlined, so that closure_check can stop at
// exactly these; test/signal/allowed-symbols lists them with the guard. test/signal/storm_test runs
// the guards.
#define MPLITE_ORDINARY [[gnu::noinline]]
