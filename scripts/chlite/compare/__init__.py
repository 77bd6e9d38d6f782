"""scripts/compare: MPI installations beside each other and beside raw TCP."""
