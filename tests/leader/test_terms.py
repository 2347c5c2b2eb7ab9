"""One process at a time does a duty, and a leader that was suspended cannot write with an old term."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

import tenure.store
from tenure.leader.duties.registry import DUTIES
from tenure.leader.leader import Leader
from tenure.model.wakeup import Wakeup
from tenure.store import leases
from tenure.store.leases import Term
from tests.leader.guarded import LOOKS, WRITES, everything, lay_out_work
from tests.store.database import Database
from tests.store.locks import meanwhile, waits_for_a_lock
from tests.waiting import until

SQL = Path(tenure.store.__file__).parent / "sql"

ASKED = {**WRITES, **LOOKS}


def told(database: Database, name: str, term: Term) -> bool:
    """Whether the statement says that the term holds: in its first column, or by whether there is a row. Of jobs that expire it
    tells how many: none."""
    rows = database.run(ASKED[name](database, term))
    return bool(rows) and bool(rows[0][0])


def test_every_statement_that_takes_a_term_is_tested_here():
    """A new statement needs something to do in `guarded`."""
    guarded = {str(path.relative_to(SQL).with_suffix("")) for path in SQL.rglob("*.sql") if ":term" in path.read_text("utf-8")}
    assert guarded == set(ASKED)


@pytest.mark.parametrize("name", ASKED)
def test_the_statement_checks_the_term_and_locks_its_row(name):
    """Checks the text: a check before the write, in its own statement, would be too early."""
    text = (SQL / f"{name}.sql").read_text("utf-8")
    guard = "l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()"
    assert guard in text
    assert name == "leases/check_lease" or f"{guard}\n       for key share)" in text


def check_writes_nothing(database: Database, *terms: Term) -> None:
    """With none of these terms does any of the statements write, although each of them has something to do."""
    before = everything(database)
    for name in ASKED:
        for term in terms:
            assert not told(database, name, term), name
        assert everything(database) == before, name


def test_a_leader_of_an_older_term_writes_nothing(database):
    lay_out_work(database)
    old = database.term("duty")
    database.end_term("duty")
    database.term("duty")
    check_writes_nothing(database, old)


def test_a_leader_that_won_its_duty_again_writes_nothing_under_its_older_term(database):
    lay_out_work(database)
    holder = str(uuid4())
    old = database.term("duty", holder)
    database.end_term("duty")
    database.term("duty", holder)
    check_writes_nothing(database, old)


def test_a_leader_whose_term_ended_writes_nothing_even_if_no_process_took_over(database):
    lay_out_work(database)
    term = database.term("duty")
    database.end_term("duty")
    check_writes_nothing(database, term)


def test_no_holder_writes_in_the_name_of_another(database):
    lay_out_work(database)
    term = database.term("duty")
    check_writes_nothing(
        database,
        Term(term.duty, str(uuid4()), term.term, term.ttl),
        Term("other duty", term.holder, term.term, term.ttl),
        Term(term.duty, term.holder, term.term + 1, term.ttl),
    )


@pytest.mark.parametrize("write", sorted(WRITES.keys() - {"history/drop_history", "history/make_history"}))
def test_the_leader_of_the_current_term_does_write(database, write):
    """Otherwise the tests above would prove nothing. Of partitions: in tests/store/test_history.py."""
    lay_out_work(database)
    term = database.term("duty")
    before = everything(database)
    database.run(WRITES[write](database, term))
    after = everything(database)
    assert after != before
    assert after["leases"] == before["leases"]


def test_a_statement_with_the_current_term_reports_that_it_holds(database):
    lay_out_work(database)
    term = database.term("duty")
    before = everything(database)
    for look in LOOKS:
        assert told(database, look, term), look
        assert everything(database) == before, look


async def test_a_take_over_waits_for_the_write_under_way(dsn, database, other):
    lay_out_work(database)
    term = database.term("duty", ttl=0.2)
    with Database(dsn) as third:
        with other.connection.transaction():
            assert other.run(WRITES["jobs/promote_jobs"](database, term))[0][:2] == (True, 1)
            await until(lambda: database.sql("select expires_at < clock_timestamp() from tenure.leases"), is_=[(True,)])
            taken = meanwhile(lambda: third.run(leases.acquire(str(uuid4()), [("duty", 60.0)])))
            await waits_for_a_lock(database)
        assert json.loads(taken()[0][0]) == {"duty": 2}


def test_the_term_grows_with_every_holder(database):
    terms = []
    for _ in range(3):
        terms.append(database.term("duty").term)
        database.end_term("duty")
    assert terms == [1, 2, 3]


def test_a_held_duty_is_not_acquired_and_the_wait_is_returned(database):
    database.term("stager", ttl=60)
    [(won, next_free)] = database.run(leases.acquire(str(uuid4()), [("stager", 10.0), ("reaper", 10.0)]))
    assert json.loads(won) == {"reaper": 1}
    assert 50 < next_free <= 60


async def test_two_at_the_same_time_do_not_both_win(dsn, database, other):
    with Database(dsn) as third:
        with other.connection.transaction():
            [(first, _)] = other.run(leases.acquire(str(uuid4()), [("duty", 60.0)]))
            second = meanwhile(lambda: third.run(leases.acquire(str(uuid4()), [("duty", 60.0)])))
            await waits_for_a_lock(database)
        assert json.loads(first) == {"duty": 1}
        assert json.loads(second()[0][0]) == {}


def test_only_the_holder_of_the_term_can_release_it(database):
    term = database.term("duty")
    database.run(leases.release(str(uuid4()), [term]))
    database.run(leases.release(term.holder, [Term(term.duty, term.holder, term.term + 1, term.ttl)]))
    assert database.sql("select expires_at > now() from tenure.leases") == [(True,)]
    database.run(leases.release(term.holder, [term]))
    assert database.sql("select expires_at > clock_timestamp() from tenure.leases") == [(False,)]


async def test_two_leaders_share_the_duties_without_sharing_one(database_target, database):
    leaders = [Leader(database_target) for _ in range(2)]
    for leader in leaders:
        leader.start()
    await until(lambda: sum(len(leader.duties_held) for leader in leaders), is_=len(DUTIES))
    assert sorted(duty for leader in leaders for duty in leader.duties_held) == sorted(DUTIES)
    first = next(leader for leader in leaders if leader.duties_held)
    second = next(leader for leader in leaders if leader is not first)
    await first.stop()
    second.on_wakeup(Wakeup.duty_free())
    await until(lambda: second.duties_held, is_=sorted(DUTIES))
    assert dict(database.sql("select name, holder::text from tenure.leases")) == dict.fromkeys(second.duties_held, second.holder)
    await second.stop()


async def test_a_leader_that_lost_its_term_notices_and_is_elected_again(database_target, database):
    leader = Leader(database_target)
    leader.start()
    await until(lambda: leader.duties_held, is_=sorted(DUTIES))
    database.sql("update tenure.leases set holder = gen_random_uuid(), term = term + 1, expires_at = now() + interval '1 second'")
    leader.on_wakeup(Wakeup.missed())
    await until(
        lambda: database.sql("select holder::text, term from tenure.leases where name = 'stager'"), is_=[(leader.holder, 3)]
    )
    await leader.stop()
