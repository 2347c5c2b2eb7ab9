"""Caretaking that the fleet needs done once: leases, terms, and the duties done under them.

Every process that runs jobs stands for election. Promises of this room:

- a duty's every write checks holder and term inside its own statement, so a leader that was asleep can do no harm;
- whoever leaves in order releases its duties at once, whoever dies loses them by time;
- the reaper never blames a worker for an outage: it acts only after a while of unbroken contact of its own.
"""
