"""Asking: hand in jobs, look at them.

Promises of this room: when `enqueue` returns, the job survives any crash; when it raises, nothing was written, or the
error says that PostgreSQL could not be reached. A call repeated by us never makes a second job.
"""
