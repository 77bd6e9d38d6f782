/* The predefined reductions, by MPI_Reduce_local and MPI_Allreduce, of every length up to a few
 * vectors, at every alignment: each element must have the bits that one C operation on two numbers
 * gives (lite_kernels.h chooses vector instructions), and nothing beside them is touched. */
#include "mpi_test.h"

#include <complex.h>
#include <stdbool.h>

enum { LONGEST = 150, MARGIN = 16, CELL = 2 * sizeof(double) };

/* No vectors and no contraction here, whatever the program is compiled with. */
#define SCALAR __attribute__((noinline, optimize("O1", "fp-contract=off")))

#define ADD(a, b) ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))
#define GREATER(a, b) ((a) > (b) ? (a) : (b))
#define LESSER(a, b) ((a) < (b) ? (a) : (b))
#define BITWISE_AND(a, b) ((a) & (b))
#define BITWISE_OR(a, b) ((a) | (b))
#define BITWISE_XOR(a, b) ((a) ^ (b))
#define LOGICAL_AND(a, b) ((a) && (b))
#define LOGICAL_OR(a, b) ((a) || (b))
#define LOGICAL_XOR(a, b) (!(a) != !(b))

#define OPERATION(type, name, operation)                           \
    static SCALAR void type##_##name(void *into, const void *from) \
    {                                                              \
        type a, b;                                                 \
        memcpy(&a, into, sizeof a);                                \
        memcpy(&b, from, sizeof b);                                \
        a = (type) operation(a, b);                                \
        memcpy(into, &a, sizeof a);                                \
    }
#define OF_NUMBERS(type)            \
    OPERATION(type, sum, ADD)       \
    OPERATION(type, prod, MULTIPLY) \
    OPERATION(type, max, GREATER)   \
    OPERATION(type, min, LESSER)
#define OF_INTEGERS(type)              \
    OF_NUMBERS(type)                   \
    OPERATION(type, band, BITWISE_AND) \
    OPERATION(type, bor, BITWISE_OR)   \
    OPERATION(type, bxor, BITWISE_XOR) \
    OPERATION(type, land, LOGICAL_AND) \
    OPERATION(type, lor, LOGICAL_OR)   \
    OPERATION(type, lxor, LOGICAL_XOR)

OF_INTEGERS(int8_t)
OF_INTEGERS(uint8_t)
OF_INTEGERS(int16_t)
OF_INTEGERS(uint16_t)
OF_INTEGERS(int32_t)
OF_INTEGERS(uint32_t)
OF_INTEGERS(int64_t)
OF_INTEGERS(uint64_t)
OF_NUMBERS(float)
OF_NUMBERS(double)

/* Complex numbers: the product as MPICH writes it, each product rounded before it is added. */
#define OF_COMPLEX(type, real)                                   \
    static SCALAR void type##_sum(void *into, const void *from)  \
    {                                                            \
        real a[2], b[2];                                         \
        memcpy(a, into, sizeof a);                               \
        memcpy(b, from, sizeof b);                               \
        a[0] += b[0];                                            \
        a[1] += b[1];                                            \
        memcpy(into, a, sizeof a);                               \
    }                                                            \
    static SCALAR void type##_prod(void *into, const void *from) \
    {                                                            \
        real a[2], b[2], c[2];                                   \
        memcpy(a, into, sizeof a);                               \
        memcpy(b, from, sizeof b);                               \
        c[0] = a[0] * b[0] - a[1] * b[1];                        \
        c[1] = a[0] * b[1] + a[1] * b[0];                        \
        memcpy(into, c, sizeof c);                               \
    }
OF_COMPLEX(complex_float, float)
OF_COMPLEX(complex_double, double)

typedef void (*Operation)(void *into, const void *from);
typedef struct {
    const char *name;
    MPI_Datatype datatype;
    int bytes, floats; /* floats: bytes of a real number in it, 0: integers */
    Operation operations[10];
} Type;
static const char *const names[] = {"sum", "prod", "max",  "min", "band",
                                    "bor", "bxor", "land", "lor", "lxor"};

/* Numbers of all magnitudes that stay finite in a product; ties and zeros for comparisons. */
static void fill(unsigned char *cells, int count, const Type *type, unsigned seed)
{
    uint64_t x = 0x9e3779b97f4a7c15u * (seed + 1);
    for (int i = 0; i < count * type->bytes; i += type->floats ? type->floats : 1) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        const double number = x % 7 == 0 ? 0 : ((double) (int64_t) x) * (x & 8 ? 1e-15 : 1e-19);
        const float single = (float) number;
        if (type->floats == 8)
            memcpy(cells + i, &number, 8);
        else if (type->floats == 4)
            memcpy(cells + i, &single, 4);
        else
            cells[i] = (unsigned char) (x % 5 == 0 ? 0 : x >> 24);
    }
}

static void verify(const Type *type, int which, MPI_Op op, bool everywhere)
{
    static unsigned char from[LONGEST * CELL + 3 * MARGIN], into[sizeof from], wanted[sizeof from];
    static unsigned char others[sizeof from];
    for (int length = 0; length <= LONGEST; length += length < 70 ? 1 : 17) {
        const int shift = (length % MARGIN) / type->bytes * type->bytes;
        const size_t first = MARGIN + (size_t) shift;
        memset(into, 0xa5, sizeof into);
        fill(from + MARGIN, length, type, (unsigned) length * 2);
        fill(into + first, length, type, (unsigned) length * 2 + 1);
        memcpy(wanted, into, sizeof into);
        for (int i = 0; i < length; i++)
            type->operations[which](wanted + first + i * type->bytes,
                                    from + MARGIN + i * type->bytes);
        if (everywhere) {
            /* rank 0 has the one, rank 1 the other; sums and products commute */
            memcpy(others, into, sizeof into);
            MPI_Allreduce(my_rank == 0 ? from + MARGIN : into + first, others + first, length,
                          type->datatype, op, MPI_COMM_WORLD);
            memcpy(into, others, sizeof into);
        } else
            MPI_Reduce_local(from + MARGIN, into + first, length, type->datatype, op);
        CHECK(memcmp(into, wanted, sizeof into) == 0, "%s of %d %s%s", names[which], length,
              type->name, everywhere ? " by MPI_Allreduce" : "");
    }
}

#define NUMBERS(type) type##_sum, type##_prod, type##_max, type##_min
#define INTEGERS(type)                                                                            \
    {                                                                                             \
        NUMBERS(type), type##_band, type##_bor, type##_bxor, type##_land, type##_lor, type##_lxor \
    }

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX,  MPI_MIN, MPI_BAND,
                          MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    const Type types[] = {
        {"MPI_INT8_T", MPI_INT8_T, 1, 0, INTEGERS(int8_t)},
        {"MPI_UINT8_T", MPI_UINT8_T, 1, 0, INTEGERS(uint8_t)},
        {"MPI_INT16_T", MPI_INT16_T, 2, 0, INTEGERS(int16_t)},
        {"MPI_UINT16_T", MPI_UINT16_T, 2, 0, INTEGERS(uint16_t)},
        {"MPI_INT32_T", MPI_INT32_T, 4, 0, INTEGERS(int32_t)},
        {"MPI_UINT32_T", MPI_UINT32_T, 4, 0, INTEGERS(uint32_t)},
        {"MPI_INT64_T", MPI_INT64_T, 8, 0, INTEGERS(int64_t)},
        {"MPI_UINT64_T", MPI_UINT64_T, 8, 0, INTEGERS(uint64_t)},
        {"MPI_FLOAT", MPI_FLOAT, 4, 4, {NUMBERS(float)}},
        {"MPI_DOUBLE", MPI_DOUBLE, 8, 8, {NUMBERS(double)}},
        {"MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX, 8, 4, {complex_float_sum, complex_float_prod}},
        {"MPI_C_DOUBLE_COMPLEX",
         MPI_C_DOUBLE_COMPLEX,
         16,
         8,
         {complex_double_sum, complex_double_prod}},
    };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int which = 0; which < 10; which++)
            if (types[t].operations[which] != NULL) {
                verify(&types[t], which, ops[which], false);
                if (ranks == 2)
                    verify(&types[t], which, ops[which], true);
            }
    return finish("reductions");
}
