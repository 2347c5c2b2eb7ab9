"""Worker processes: a supervisor that runs no user code, and children that do.

Guarantees of this package:

- the supervisor renews the lease, so a handler that blocks or uses all CPU time cannot lose it;
- the death of a child is noticed at once, its jobs are requeued at once, and a new child replaces it;
- children do not outlive their supervisor;
- a stalled child is killed after the stall limit.
"""
