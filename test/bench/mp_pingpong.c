/* Half round trip between ranks 0 and 1 for 1 byte to 1 MB, with blocking MP_Send and MP_Recv: the
 * smallest MP_* program. cc mp_pingpong.c -lmplite …; lite-mprun -n 2 ./mp_pingpong */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mplite.h"

enum { TAG = 7, BYTES_MAX = 1 << 20 };

static void check(int result)
{
    if (result == MP_OK)
        return;
    fprintf(stderr, "%s\n", MP_Last_Error());
    exit(1);
}

static void round_trips(char *buffer, int bytes, int count)
{
    int other = 1 - MP_Myproc();
    for (int i = 0; i < count; i++) {
        if (MP_Myproc() == 0)
            check(MP_Send(buffer, bytes, other, TAG));
        check(MP_Recv(buffer, bytes, other, TAG));
        if (MP_Myproc() == 1)
            check(MP_Send(buffer, bytes, other, TAG));
    }
}

int main(int argc, char **argv)
{
    check(MP_Init(&argc, &argv));
    if (MP_Nprocs() < 2) {
        fprintf(stderr, "two ranks are needed: lite-mprun -n 2 %s\n", argv[0]);
        return 1;
    }
    char *buffer = malloc(BYTES_MAX);
    if (buffer == NULL)
        return 1;
    memset(buffer, 1, BYTES_MAX);
    if (MP_Myproc() == 0)
        printf("%10s %12s %10s\n", "bytes", "us", "MB/s");
    for (int bytes = 1; bytes <= BYTES_MAX && MP_Myproc() < 2; bytes *= 4) {
        int count = bytes < 65536 ? 2000 : 200;
        round_trips(buffer, bytes, count / 10); /* the connection, caches and window sizes settle */
        double start = MP_Time();
        round_trips(buffer, bytes, count);
        double half = (MP_Time() - start) / count / 2;
        if (MP_Myproc() == 0)
            printf("%10d %12.2f %10.1f\n", bytes, half * 1e6, bytes / half * 1e-6);
    }
    free(buffer);
    check(MP_Finalize());
    return 0;
}
