"""An enqueue on a database without our schema names that database, as the start of a worker does."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tenure import SchemaMismatch, Tenure
from tests.store.clean import bare_dsn

__all__ = ["bare_dsn"]


@pytest.fixture
def check_error(bare_dsn):
    def check(error: SchemaMismatch) -> None:
        parts = conninfo_to_dict(bare_dsn)
        text = str(error)
        assert f"this is database {parts['dbname']!r} on {parts['host']}, user {parts['user']!r}; " in text
        assert "if that is the right database, run `tenure migrate`, otherwise correct the DSN" in text
        assert "s3cret" not in text

    return check


async def test_an_enqueue_on_the_wrong_database_names_it(bare_dsn, check_error):
    app = Tenure(make_conninfo(bare_dsn, password="s3cret"))

    @app.job
    async def work() -> None: ...

    with pytest.raises(SchemaMismatch) as raised:
        await work.enqueue()
    check_error(raised.value)
    with pytest.raises(SchemaMismatch) as raised:
        await app.worker(queues=["default"]).run()
    check_error(raised.value)
    await app.close()


def test_so_does_one_without_an_event_loop(bare_dsn, check_error):
    app = Tenure(make_conninfo(bare_dsn, password="s3cret"))

    @app.job
    async def work() -> None: ...

    with pytest.raises(SchemaMismatch) as raised:
        work.enqueue_sync()
    check_error(raised.value)
