/* What MPI_Reduce_local costs, by operation, type and size. mpi_reductions [SECONDS per point].
 * Prints a line of JSON per point: medians of batches, in microseconds per call. */
#include "bench_common.h"

#include <mpi.h>

enum { BATCHES_MAX = 512, BYTES_MAX = 1 << 20 };

static unsigned char from[BYTES_MAX], into[BYTES_MAX];

static void measure(const char *name, MPI_Op op, MPI_Datatype datatype, int bytes, double seconds)
{
    static double batches[BATCHES_MAX];
    int size, number = 0;
    MPI_Type_size(datatype, &size);
    const int calls = 1 + (1 << 18) / bytes;
    const double begin = now_us();
    /* zeros: no number grows out of its range or gets slow */
    memset(from, 0, sizeof from);
    memset(into, 0, sizeof into);
    do {
        const double before = now_us();
        for (int i = 0; i < calls; i++)
            MPI_Reduce_local(from, into, bytes / size, datatype, op);
        batches[number++] = (now_us() - before) / calls;
    } while (number < BATCHES_MAX && now_us() - begin < 1e6 * seconds);
    printf("{\"pattern\": \"%s\", \"bytes\": %d, \"us\": %.4f}\n", name, bytes,
           median(batches, number));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const double seconds = argc > 1 ? atof(argv[1]) : 0.3;
    static const int sizes[] = {1024, 65536, BYTES_MAX};
    const struct {
        const char *name;
        MPI_Op op;
        MPI_Datatype datatype;
    } kernels[] = {
        {"sum double", MPI_SUM, MPI_DOUBLE},
        {"sum float", MPI_SUM, MPI_FLOAT},
        {"sum int8", MPI_SUM, MPI_INT8_T},
        {"sum int32", MPI_SUM, MPI_INT32_T},
        {"sum int64", MPI_SUM, MPI_INT64_T},
        {"sum complex", MPI_SUM, MPI_C_DOUBLE_COMPLEX},
        {"prod double", MPI_PROD, MPI_DOUBLE},
        {"prod int32", MPI_PROD, MPI_INT32_T},
        {"prod complex", MPI_PROD, MPI_C_DOUBLE_COMPLEX},
        {"max double", MPI_MAX, MPI_DOUBLE},
        {"max float", MPI_MAX, MPI_FLOAT},
        {"max int32", MPI_MAX, MPI_INT32_T},
        {"min double", MPI_MIN, MPI_DOUBLE},
        {"band int32", MPI_BAND, MPI_INT32_T},
        {"bor int8", MPI_BOR, MPI_UINT8_T},
        {"land int32", MPI_LAND, MPI_INT32_T},
        {"lor int32", MPI_LOR, MPI_INT32_T},
    };
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            measure(kernels[k].name, kernels[k].op, kernels[k].datatype, sizes[s], seconds);
    MPI_Finalize();
    return 0;
}
