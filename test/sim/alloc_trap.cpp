// malloc and kin, with the trap in front: by name on glibc, by the sanitizer's hooks in an
// instrumented build.
#include "alloc_trap.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
#else
#include <errno.h>
#include <malloc.h>
#endif

namespace alloc_trap {

thread_local int t_armed = 0;

static void check(const char* call) {
  if (t_armed == 0) return;
  t_armed = 0;
  const char* parts[] = {"allocation in the signal handler: ", call, "\n"};
  for (const char* part : parts)
    if (write(2, part, strlen(part)) < 0) break;
  abort();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static void on_malloc(const volatile void*, size_t) { check("malloc"); }
static void on_free(const volatile void* p) {
  if (p != nullptr) check("free");
}
void install() {
  static bool done = false;
  if (!done) __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
  done = true;
}
#else
void install() {}
#endif

}  // namespace alloc_trap

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// How a long payload is padded (stream_padding.h) depends on where it begins in a line of the
// cache. That must not depend on what was freed before: a simulation's seed is to give the same
// always.
static constexpr size_t kLine = 64, kWholeLines = 16 * 1024;

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t n) {
  alloc_trap::check("malloc");
  return n < kWholeLines ? __libc_malloc(n) : __libc_memalign(kLine, n);
}
void* calloc(size_t n, size_t m) {
  alloc_trap::check("calloc");
  return __libc_calloc(n, m);
}
void* realloc(void* p, size_t n) {
  alloc_trap::check("realloc");
  return __libc_realloc(p, n);
}
void* memalign(size_t a, size_t n) {
  alloc_trap::check("memalign");
  return __libc_memalign(a, n);
}
void* aligned_alloc(size_t a, size_t n) {
  alloc_trap::check("aligned_alloc");
  return __libc_memalign(a, n);
}
int posix_memalign(void** p, size_t a, size_t n) {
  alloc_trap::check("posix_memalign");
  void* got = __libc_memalign(a, n);
  if (got == nullptr) return ENOMEM;
  *p = got;
  return 0;
}
void free(void* p) {
  if (p != nullptr) alloc_trap::check("free");
  __libc_free(p);
}
}
#endif
