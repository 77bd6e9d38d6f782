/* How the host's reduction kernels (src/mpi/coll/op: MPI_SUM and its like) are compiled: vectorized
 * whatever the host is optimized with, and once per kind of processor. The loader chooses, so a
 * library serves unlike hosts. A product and a sum are rounded one by one (no contraction), or
 * MPI_PROD of complex numbers would not have the same bits on all ranks of unlike hosts.
 *
 * install-device puts MPIDI_LITE_KERNEL before these functions. */
#ifndef LITE_KERNELS_H_INCLUDED
#define LITE_KERNELS_H_INCLUDED

#include <limits.h> /* __GLIBC__ */

/* Not in builds for a debugger, nor with a sanitizer or -fstack-protector-all: neither is ready
 * when the loader chooses. The choice needs the loader of glibc, and gcc: clang 14 gives the
 * function another name. */
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    defined(__SSP_ALL__)
#define MPIDI_LITE_KERNEL
#elif defined(__clang__)
#define MPIDI_LITE_KERNEL _Pragma("STDC FP_CONTRACT OFF") /* it vectorizes from -O2 on */
#elif !defined(__GNUC__)
#define MPIDI_LITE_KERNEL
#elif defined(__x86_64__) && defined(__GLIBC__)
#define MPIDI_LITE_KERNEL \
    __attribute__((optimize("O3", "fp-contract=off"), target_clones("default", "avx2", "avx512f")))
#else
#define MPIDI_LITE_KERNEL __attribute__((optimize("O3", "fp-contract=off")))
#endif

#endif
