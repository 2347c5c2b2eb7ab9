"""Processes: a supervisor that runs no user code, and children that do.

Promises of this room:

- the lease is renewed by the supervisor, so no handler, however it blocks or hogs, can lose it;
- a child's death is seen at once and its jobs are given back at once; a new child takes its place;
- children do not outlive their supervisor;
- a frozen child is not kept alive for ever.
"""
