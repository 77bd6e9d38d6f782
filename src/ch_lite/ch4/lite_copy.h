/* How the host copies: what may be long by the device's lite_copy. From 2 KB on, memcpy of
 * glibc 2.33 to 2.38 is slow on AMD's processors from Zen 3 on, when the destination begins a few
 * bytes behind the source within a page, as buffers of malloc often do to others. MPI_Reduce,
 * MPI_Scan and their like copy the user's data once, datatypes and shared memory all of it. */
#ifndef LITE_COPY_H_INCLUDED
#define LITE_COPY_H_INCLUDED

#include <string.h> /* before the macro */

#include "ch_lite/ch_lite_copy.h"

#define MPIDI_LITE_LONG_COPY 2048 /* bytes */

#if defined(__x86_64__) && defined(__OPTIMIZE__)
static inline void *MPIDI_LITE_memcpy(void *to, const void *from, size_t bytes)
{
    return !__builtin_constant_p(bytes) && bytes > MPIDI_LITE_LONG_COPY
               ? lite_copy(to, from, bytes)
               : __builtin_memcpy(to, from, bytes);
}
#define memcpy(to, from, bytes) MPIDI_LITE_memcpy(to, from, bytes)
#endif

#endif
