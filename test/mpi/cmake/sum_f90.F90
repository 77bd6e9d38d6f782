! Fortran 90 (use mpi): the sum of the ranks, and a message round the ring.
program sum_f90
  use mpi
  implicit none
  integer :: rank, size, total, ierr
  double precision :: out(10000), in(10000)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  out = rank
  in = -1
  call MPI_Sendrecv(out, 10000, MPI_DOUBLE_PRECISION, mod(rank + 1, size), 0, &
                    in, 10000, MPI_DOUBLE_PRECISION, mod(rank + size - 1, size), 0, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  if (total /= size * (size - 1) / 2 .or. any(in /= mod(rank + size - 1, size))) then
    print *, 'rank', rank, 'of', size, ': wrong data'
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end if
  call MPI_Finalize(ierr)
end program
