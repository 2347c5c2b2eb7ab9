"""Leases of workers are renewed even if PostgreSQL refuses other rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tenure.store.faults import Refused
from tenure.store.link import Link
from tenure.store.renewals import renew
from tenure.store.target import DatabaseTarget
from tests.store.database import Database

OUT_OF_DATE = "expires_at < now() + interval '1 minute'"


@pytest.fixture
async def link(database_target: DatabaseTarget) -> AsyncIterator[Link]:
    link = Link(database_target, "tests")
    yield link
    await link.close()


@pytest.fixture
def refuse(database: Database) -> Iterator[Callable[..., None]]:
    database.sql("create schema audit")

    def make(*ids: str, code: str = "AU001") -> None:
        database.sql(
            "create function audit.refuse() returns trigger language plpgsql as"
            f" $$ begin raise exception 'the auditor says no' using errcode = '{code}'; end $$"
        )
        listed = ", ".join(f"'{worker_id}'" for worker_id in ids)
        database.sql(
            "create trigger audit before update on tenure.workers for each row"
            f" when (old.id in ({listed})) execute function audit.refuse()"
        )

    yield make
    database.sql("drop schema audit cascade")


@pytest.mark.parametrize("code", ["AU001", "08001", "55P03", "40001"])
async def test_a_worker_that_cannot_be_renewed_costs_no_other_its_lease(link, database, refuse, code):
    ids = [database.worker(ttl=15) for _ in range(5)]
    database.condemn(ids[4])
    refuse(ids[2], code=code)
    renewal = await renew(link, ids, ["default"], 600.0, counting=True)
    assert renewal.renewed == {ids[0], ids[1], ids[3]}
    assert {worker_id: error.sqlstate for worker_id, error in renewal.refused.items()} == {ids[2]: code}
    assert (renewal.suspects, renewal.alike) == (False, dict.fromkeys([ids[0], ids[1], ids[3]], 4))
    assert database.sql(f"select id::text from tenure.workers where died_at is null and {OUT_OF_DATE}") == [(ids[2],)]


async def test_a_renewal_that_is_refused_for_all_is_an_error(link, database, refuse):
    ids = [database.worker(ttl=15) for _ in range(2)]
    refuse(*ids)
    with pytest.raises(Refused, match="the auditor says no"):
        await renew(link, ids, ["default"], 600.0, counting=False)
