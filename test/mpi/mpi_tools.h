/* Reads performance variables of MPI_T by their names, for test programs. After MPI_T_init_thread
 * and MPI_T_pvar_session_create(&session). */
#ifndef MPI_TOOLS_H_INCLUDED
#define MPI_TOOLS_H_INCLUDED

#include "mpi_test.h"

static MPI_T_pvar_session session;

/* ~0 when there is none, and a failed check. */
static unsigned long long pvar_of(const char *name, int class)
{
    MPI_T_pvar_handle handle;
    unsigned long long value = ~0ull;
    int index = -1, count;

    CHECK(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS, "%s", name);
    if (index < 0)
        return value;
    CHECK(
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS && count == 1,
        "%s", name);
    CHECK(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS, "%s", name);
    MPI_T_pvar_handle_free(session, &handle);
    return value;
}

#endif
