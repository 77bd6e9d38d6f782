/* memcpy for the host: the copies of long data that MPICH makes itself (temporary buffers of
 * collectives, datatypes, shared memory). C. Implemented by copy.cpp. */
#ifndef CH_LITE_COPY_H_INCLUDED
#define CH_LITE_COPY_H_INCLUDED

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As memcpy, of any length: for what may be long (see mplite/base/iov_cursor.h, copy_bytes).
 * Signal-safe. Returns `to`. */
void* lite_copy(void* to, const void* from, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
