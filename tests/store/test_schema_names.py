"""The name of the schema: works everywhere, or is refused before anything is done."""

from __future__ import annotations

import re

import pytest

from tenure import ConfigError, Limit, Tenure
from tenure.settings import Settings
from tenure.store.migrator import roles_sql
from tenure.store.target import DatabaseTarget
from tests.worker.serving import serving

DSN = "postgresql://localhost/shop"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "without spaces around it"),
        (" tenure", "without spaces around it"),
        ("a'b", "cannot be part of the name"),
        ('a"b', "cannot be part of the name"),
        ("a%b", "cannot be part of the name"),
        ("a\\1b", "cannot be part of the name"),
        (":now", "cannot be part of the name"),
        ("a$$b", "cannot be part of the name"),
        ("a\nb", "cannot be part of the name"),
        ("pg_jobs", "PostgreSQL keeps such names for itself"),
        ("information_schema", "PostgreSQL keeps such names for itself"),
        ("x" * 70, "70 bytes"),
        ("\u0442" * 28, "56 bytes"),
    ],
)
def test_a_name_that_cannot_work_is_refused_with_the_way_out(name, why):
    with pytest.raises(ConfigError, match=why):
        DatabaseTarget.at(DSN, schema=name)
    with pytest.raises(ConfigError, match=why):
        _ = Settings(dsn=DSN, schema=name).database


@pytest.mark.parametrize("name", ["select", "a-b", "1st", "\u0442\u0435\u0441\u0442", "Tenure", "x" * 55])
async def test_any_other_name_works_from_end_to_end(bare_dsn, name):
    app = Tenure(bare_dsn, schema=name)

    @app.job
    async def plain(n: int) -> int:
        return n

    @app.job(concurrency=Limit(1), key="n")
    async def limited(n: int) -> int:
        return n

    await app.migrate()
    async with serving(app):
        handles = [await plain.enqueue(1), await plain.using(delay="100ms", key="k").enqueue(2), await limited.enqueue(3)]
        assert [await handle.result(timeout=30) for handle in handles] == [1, 2, 3]
        assert [worker.queues for worker in await app.client().workers()] == [["default"]]
    await app.close()


def test_the_roles_of_the_longest_name_have_names_that_postgresql_does_not_cut_off():
    names = set(re.findall(r"x{55}\w*", roles_sql("x" * 55)))
    assert len(names) >= 4
    assert max(map(len, names)) <= 63
