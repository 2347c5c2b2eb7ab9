"""Cluster-wide singleton tasks ("duties"): leases, terms, and the duties done under them.

Every process that runs jobs is a candidate. Guarantees of this package:

- each write of a duty checks holder and term in its own statement, so a leader that was suspended cannot write with an old term;
- a process that shuts down releases its duties at once; the duties of a process that dies are free when its lease expires;
- the reaper does not condemn workers because of an outage: it acts only after 10 s of unbroken contact of its own.
"""
