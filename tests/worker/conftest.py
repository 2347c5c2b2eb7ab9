"""The fixtures of tests that work on one shared, emptied database, and of those that share a worker."""

from tests.store.clean import bare_dsn, database, dsn, fresh_dsn, other, shared_database, shared_dsn, sql
from tests.worker.shared_worker import shared_worker, shared_worker_dsn

__all__ = [
    "bare_dsn",
    "database",
    "dsn",
    "fresh_dsn",
    "other",
    "shared_database",
    "shared_dsn",
    "shared_worker",
    "shared_worker_dsn",
    "sql",
]
