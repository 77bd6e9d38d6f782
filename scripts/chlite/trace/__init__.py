"""scripts/trace-merge: the traces of a job's ranks (LITE_TRACE) in one file or picture."""
