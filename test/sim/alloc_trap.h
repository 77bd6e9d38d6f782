// Aborts on malloc, free and their kin while a simulated or real signal handler runs.
// Armed by the harness around the handler; the harness' and the fake network's own work inside is
// let through.
#pragma once

namespace alloc_trap {

extern thread_local int t_armed;  // > 0: allocation aborts

// Around the code that must not allocate.
struct Armed {
  Armed() { ++t_armed; }
  ~Armed() { --t_armed; }
};

// Around the test's own code inside it.
struct Pardon {
  int before = t_armed;
  Pardon() { t_armed = 0; }
  ~Pardon() { t_armed = before; }
};

// Makes the hooks known where they are not linked in by name (sanitizers). Call once.
void install();

}  // namespace alloc_trap
