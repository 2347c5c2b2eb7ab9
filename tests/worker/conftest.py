"""The fixtures of tests that work on one shared, emptied database, and of those that share a worker."""

from tests.store.clean import bare_dsn, desk, dsn, fresh_dsn, other, shared_dsn
from tests.worker.bench import bench, bench_dsn

__all__ = ["bare_dsn", "bench", "bench_dsn", "desk", "dsn", "fresh_dsn", "other", "shared_dsn"]
