/* What the programs under MPI say of the library that they run on. */
#ifndef BENCH_MPI_H_INCLUDED
#define BENCH_MPI_H_INCLUDED

#include <mpi.h>
#include "bench_common.h"

/* A line of JSON: {"library":"MPICH Version: 4.0.2, ch4:lite"}. */
static inline void print_library(void)
{
    printf("{\"library\":\"");
#if defined(MPI_VERSION) && MPI_VERSION >= 3
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    print_text(version);
    /* MPICH's further line that says which it is */
    const char *device = strstr(version, "MPICH Device:");
    if (device) {
        fputs(", ", stdout);
        print_text(device + strlen("MPICH Device:") +
                   strspn(device + strlen("MPICH Device:"), " \t"));
    }
#else
    printf("MPI before version 3");
#endif
    printf("\"}\n");
}

#endif
