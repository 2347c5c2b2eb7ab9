"""The fixtures of tests that work on one shared, emptied database."""

from tests.store.clean import bare_dsn, database, dsn, fresh_dsn, other, shared_database, shared_dsn, sql

__all__ = ["bare_dsn", "database", "dsn", "fresh_dsn", "other", "shared_database", "shared_dsn", "sql"]
