"""test/bench/overlap: how much of the communication hides behind computation."""
