// The engine's copy for the host's code.
#include "ch_lite/ch_lite_copy.h"

#include "mplite/base/iov_cursor.h"

void* lite_copy(void* to, const void* from, size_t bytes) {
  mplite::copy_bytes(to, from, bytes);
  return to;
}
