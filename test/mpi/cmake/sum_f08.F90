! Fortran 2008 (use mpi_f08): the sum of the ranks, and a nonblocking message round the ring.
program sum_f08
  use mpi_f08
  implicit none
  integer :: rank, size, total
  double precision, asynchronous :: out(10000), in(10000)
  type(MPI_Request) :: requests(2)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  out = rank
  in = -1
  call MPI_Irecv(in, 10000, MPI_DOUBLE_PRECISION, mod(rank + size - 1, size), 0, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(out, 10000, MPI_DOUBLE_PRECISION, mod(rank + 1, size), 0, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  if (total /= size * (size - 1) / 2 .or. any(in /= mod(rank + size - 1, size))) then
    print *, 'rank', rank, 'of', size, ': wrong data'
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end if
  call MPI_Finalize()
end program
