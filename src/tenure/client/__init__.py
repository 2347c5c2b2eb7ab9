"""The client: enqueues jobs, finds and controls them.

Promises: when `enqueue` returns, the job survives any crash; when it raises, nothing was written, or the
error says that PostgreSQL could not be reached. An enqueue that the client repeats never makes a second job.
"""
