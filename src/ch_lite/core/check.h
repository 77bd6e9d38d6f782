// The assertion of the device: for our own bugs, on in release too (one predictable branch).
// Traps instead of printing, as it may run in the signal handler.
#pragma once

#define CHLITE_CHECK(condition)                              \
  do {                                                       \
    if (__builtin_expect(!(condition), 0)) __builtin_trap(); \
  } while (0)
