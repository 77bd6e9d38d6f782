/* Sessions one after the other, each of which starts and ends all of MPI: sessions COUNT. In each:
 * messages, a reduction of pairs, a type of its own, and in some a window. MPICH before 4.2 can
 * have one only. */
#include "mpi_test.h"

#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
enum { COUNT_MAX = 1 };
#else
enum { COUNT_MAX = 1000 };
#endif

struct pair {
    long value;
    int place;
};

static void reduce_pairs(MPI_Comm comm, int count)
{
    struct pair mine = {count + my_rank, my_rank}, least = {-1, -1};
    MPI_Allreduce(&mine, &least, 1, MPI_LONG_INT, MPI_MINLOC, comm);
    CHECK(least.value == count && least.place == 0, "%ld at %d", least.value, least.place);
}

/* Every second of six numbers. */
static void send_own_type(MPI_Comm comm, int count)
{
    const int right = (my_rank + 1) % ranks, left = (my_rank + ranks - 1) % ranks;
    int out[6], in[3] = {-1, -1, -1};
    MPI_Datatype type;
    for (int i = 0; i < 6; i++)
        out[i] = 10 * my_rank + i + count;
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(out, 1, type, right, 1, in, 3, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++)
        CHECK(in[i] == 10 * left + 2 * i + count, "%d at %d", in[i], i);
    MPI_Type_free(&type);
}

static void put_right(MPI_Comm comm, int count)
{
    const int left = (my_rank + ranks - 1) % ranks, mine = my_rank + count;
    int *memory;
    MPI_Win window;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &window);
    MPI_Win_fence(0, window);
    MPI_Put(&mine, 1, MPI_INT, (my_rank + 1) % ranks, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    CHECK(*memory == left + count, "%d", *memory);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    const int wanted = argc > 1 ? atoi(argv[1]) : 3,
              count = wanted < COUNT_MAX ? wanted : COUNT_MAX;
    for (int i = 0; i < count; i++) {
        MPI_Session session;
        MPI_Group world;
        MPI_Comm comm;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
        MPI_Comm_create_from_group(world, "sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        MPI_Comm_rank(comm, &my_rank);
        MPI_Comm_size(comm, &ranks);
        reduce_pairs(comm, i);
        send_own_type(comm, i);
        if (i % 20 < 2)
            put_right(comm, i);
        MPI_Comm_free(&comm);
        MPI_Group_free(&world);
        MPI_Session_finalize(&session);
    }
    printf("sessions: %d checks, %d failed, %d sessions\n", checks_done, checks_failed, count);
    return checks_failed != 0;
}
