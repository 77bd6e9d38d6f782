/* The clock of MPI_Wtime: monotonic, in nanoseconds. */
#ifndef MPID_Wtime
#define MPID_Wtime(t) (*(t) = MPID_Lite_Wtime())
#define MPID_Wtick(t) (*(t) = 1e-9)
double MPID_Lite_Wtime(void);
void MPID_CH_Wtick(double*);
#endif
