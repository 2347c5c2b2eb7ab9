"""Running: claim, slots, execution, settling.

What this package guarantees:

- a job is claimed only into a free slot, and never more than there are;
- each run is settled at most once, by the holder of its claim; what a stale run wants to write is refused by the statement;
- a finished result is kept and sent until PostgreSQL has answered for it, however long that takes;
- no transaction is open while a handler runs, unless the handler asked for one.
"""
