"""Which process does a duty: by lease, shared, or by a lock; handed over cleanly, and never done by two processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tenure.leader import leader as leading
from tenure.leader import terms
from tenure.leader.duties.duty import RoundResult
from tenure.leader.duties.registry import DUTIES
from tenure.leader.election import SHARED, Election
from tenure.leader.leader import Leader
from tenure.leader.settings import LeaderSettings
from tenure.model.errors import ConfigError
from tenure.model.wakeup import Wakeup
from tenure.store import jobs, leases
from tenure.store.leases import LeaseHeartbeat, Term
from tenure.store.link import Link
from tenure.store.target import DatabaseTarget
from tenure.store.wakeups import Wakeups
from tests.planted_secrets import assert_no_secret
from tests.store.database import Database
from tests.waiting import until

ALL = sorted(DUTIES)
LEADERS_LOCKS = """from pg_locks where locktype = 'advisory' and objsubid = 1
    and database = (select oid from pg_database where datname = current_database())"""


class Counting:
    """A duty that does nothing but count its rounds."""

    name = "counting"
    wakes_on = ()
    divisible = False

    def __init__(self, rest: float = 0.01) -> None:
        self.rounds: list[Term] = []
        self.rest = rest

    async def run_once(self, link: Link, term: Term) -> RoundResult:
        holds = bool(await link.fetch(leases.check(term)))
        if holds:
            self.rounds.append(term)
        return RoundResult(holds, touched=2, rest=self.rest)


@pytest.fixture
async def leaders(database_target: DatabaseTarget) -> AsyncIterator[Any]:
    """Makes leaders, and stops them at the end."""
    made: list[Leader] = []

    def make(at: DatabaseTarget | None = None, **more: Any) -> Leader:
        settings = LeaderSettings(**{"rotate": 0.0, "heartbeat": 0.1, **more.pop("settings", {})})
        made.append(Leader(at or database_target, settings, **more))
        made[-1].start()
        return made[-1]

    yield make
    for leader in made:
        await leader.stop()


def lease(database: Database, duty: str) -> dict[str, Any]:
    [(holder, term, metadata, left)] = database.sql(
        "select holder::text, term, metadata, extract(epoch from expires_at - now())::float8 from tenure.leases where name = %s",
        duty,
    )
    return {"holder": holder, "term": term, "left": left, **metadata}


# Heartbeats


async def test_heartbeats_between_the_rounds_store_what_was_done(leaders, database):
    duty = Counting(rest=600.0)
    leader = leaders(duties=[duty])
    await until(lambda: leader.duties_held, is_=["counting"])
    database.sql("update tenure.leases set expires_at = now() + interval '2 s'")
    await until(lambda: lease(database, "counting")["left"] > 8)
    await until(lambda: lease(database, "counting").get("runs"), is_=1)
    told = lease(database, "counting")
    assert (told["items"], told["errors"], told["term"]) == (2, 0, 1)
    assert {"last_run", "last_seconds", "next_run", "host", "pid", "strategy"} <= told.keys()


async def test_failed_rounds_are_stored_and_counted(leaders, database):
    class Failing(Counting):
        async def run_once(self, link: Link, term: Term) -> RoundResult:
            raise RuntimeError("no luck")

    leaders(duties=[Failing()])
    await until(lambda: "counting" in dict(database.sql("select name, term from tenure.leases")))
    await until(lambda: lease(database, "counting").get("errors", 0) > 1)
    assert lease(database, "counting")["last_error"] == "RuntimeError: no luck"


async def test_the_record_continues_over_the_terms(leaders, database):
    first = leaders(duties=[Counting(rest=600.0)])
    await until(lambda: database.sql("select metadata ->> 'runs' from tenure.leases"), is_=[("1",)])
    await first.stop()
    leaders(duties=[Counting(rest=600.0)])
    await until(lambda: database.sql("select metadata ->> 'runs', term from tenure.leases"), is_=[("2", 2)])


def test_a_beat_renews_only_terms_that_hold(database):
    term, gone = database.term("one", ttl=5.0), database.term("two", ttl=5.0)
    database.end_term("two")
    held = [LeaseHeartbeat(name=t.duty, term=t.term, ttl=60.0) for t in (term, gone)]
    assert database.run(leases.beat(str(uuid4()), held)) == []
    assert database.run(leases.beat(gone.holder, held)) == []
    assert database.run(leases.beat(term.holder, held)) == [("one",)]
    assert database.sql("select name from tenure.leases where expires_at > now() + interval '30 s'") == [("one",)]


def test_a_beat_under_an_older_term_renews_nothing(database):
    holder = str(uuid4())
    old = database.term("duty", holder)
    database.end_term("duty")
    new = database.term("duty", holder, ttl=5.0)
    assert database.run(leases.beat(holder, [LeaseHeartbeat(name="duty", term=old.term, ttl=60.0)])) == []
    assert database.sql("select expires_at < now() + interval '30 s' from tenure.leases") == [(True,)]
    assert database.run(leases.beat(holder, [LeaseHeartbeat(name="duty", term=new.term, ttl=60.0)])) == [("duty",)]


# By its own clock


async def test_a_holder_that_cannot_renew_stops_acting_before_its_term_ends(leaders, database, monkeypatch):
    """Nothing was refused: the lease still holds when it stops."""
    asleep = [0.0]
    monkeypatch.setattr(terms, "boottime", lambda: clock() + asleep[0])
    clock = leading.boottime
    duty = Counting()
    leader = leaders(duties=[duty], settings={"heartbeat": 3600.0})
    await until(lambda: len(duty.rounds) > 2)
    asleep[0] = 5.0
    await until(lambda: leader.duties_held, is_=[])
    await until(lambda: not leader._held, within=3.0)  # given up, not only told so: no round will follow
    assert database.sql("select expires_at > now() from tenure.leases") == [(True,)]


async def test_a_round_is_cut_off_when_the_time_is_over(database_target, database):
    term = database.term("duty", ttl=3.0)
    held = terms.HeldTerm(term, terms.boottime())
    with pytest.raises(TimeoutError):
        async with held.round():
            await until(lambda: False)
    assert held.left <= 0


async def test_a_heartbeat_prolongs_the_round_under_way(database):
    term = database.term("duty", ttl=2.4)
    held = terms.HeldTerm(term, terms.boottime())
    async with held.round():
        held.renewed(terms.boottime() + 60)
        await until(lambda: held.round_age > 0.5)
    assert held.left > 50


# What is logged


def losses(caplog) -> list[tuple[str, str]]:
    return [(record.levelname, record.duties) for record in caplog.records if record.getMessage() == "duties lost"]


async def test_duties_that_are_lost_in_an_outage_are_one_debug_record(leaders, monkeypatch, caplog):
    caplog.set_level("DEBUG", "tenure")
    asleep = [0.0]
    monkeypatch.setattr(terms, "boottime", lambda: clock() + asleep[0])
    clock = leading.boottime
    first, second = Counting(), Counting()
    second.name = "second"
    leader = leaders(duties=[first, second], settings={"heartbeat": 3600.0})
    await until(lambda: first.rounds and second.rounds)
    leader.contact.longest_silence = 6.0
    leader.contact._since -= 60  # it had contact for a minute, and has had no answer since
    leader.contact._last -= 30
    asleep[0] = 30.0
    # The clock that is ahead makes it lose what it wins after that, too.
    [(_, duties), *_] = await until(lambda: losses(caplog))
    assert {level for level, _ in losses(caplog)} == {"DEBUG"}
    assert "counting (term 1)" in duties
    assert "second (term 1)" in duties


@pytest.mark.parametrize("stopping", [False, True])
async def test_a_duty_that_is_lost_although_postgresql_answers_is_a_warning_unless_the_leader_stops(
    leaders, database, caplog, stopping
):
    caplog.set_level("DEBUG", "tenure")
    leader = leaders(duties=[Counting(rest=600.0)])
    await until(lambda: leader.duties_held, is_=["counting"])
    leader.contact._since -= 60
    leader._stopping = stopping
    database.sql("update tenure.leases set holder = gen_random_uuid(), expires_at = now() + interval '1 hour'")
    await until(lambda: losses(caplog))
    level = "DEBUG" if stopping else "WARNING"
    assert [lost for lost, _ in losses(caplog)] == [level]


async def test_a_shared_duty_that_was_not_renewed_in_time_is_not_a_warning(leaders, monkeypatch, caplog):
    caplog.set_level("DEBUG", "tenure")
    asleep = [0.0]
    monkeypatch.setattr(terms, "boottime", lambda: clock() + asleep[0])
    clock = leading.boottime
    duty = Counting()
    duty.divisible = True
    leader = leaders(duties=[duty], settings={"strategy": "shared"})
    await until(lambda: duty.rounds)
    leader.contact._since -= 3600
    asleep[0] = 60.0
    await until(lambda: losses(caplog))
    assert [level for level, _ in losses(caplog)] == ["DEBUG"]


# Handing over


async def test_a_leader_that_leaves_is_followed_at_once_by_a_notified_candidate(leaders, database_target, database):
    listening: list[Leader] = []
    received: list[Wakeup] = []
    wakeups = Wakeups(
        database_target, lambda wakeup: (received.append(wakeup), [leader.on_wakeup(wakeup) for leader in listening])
    )
    wakeups.start()
    first = leaders(notify=wakeups.notify)
    await until(lambda: first.duties_held, is_=ALL)
    second = leaders()
    listening.append(second)
    try:
        await until(lambda: Wakeup.missed() in received)  # it listens from now on
        second.hint(3600.0)
        await first.stop()
        await until(lambda: second.duties_held, is_=ALL)
    finally:
        await wakeups.stop()
    assert {term for (term,) in database.sql("select term from tenure.leases")} == {2}


async def test_a_duty_rotates_when_there_is_another_candidate(leaders, database_target, database):
    listening: list[Leader] = []
    wakeups = Wakeups(database_target, lambda wakeup: [leader.on_wakeup(wakeup) for leader in listening])
    wakeups.start()
    first = leaders(duties=[Counting()], settings={"rotate": 0.5}, notify=wakeups.notify)
    await until(lambda: first.duties_held, is_=["counting"])
    second = leaders(duties=[Counting()], settings={"rotate": 0.5}, notify=wakeups.notify)
    listening += [first, second]
    for leader in listening:
        database.worker(supervisor=leader.holder)
    try:
        await until(lambda: second.duties_held, is_=["counting"])
        await until(lambda: first.duties_held, is_=["counting"])
    finally:
        await wakeups.stop()


async def test_a_leader_without_other_candidates_keeps_its_duties(leaders, database):
    leader = leaders(duties=[Counting()], settings={"rotate": 0.2})
    database.worker(supervisor=leader.holder)
    await until(lambda: database.sql("select (metadata ->> 'runs')::int > 100 from tenure.leases"), is_=[(True,)])
    assert lease(database, "counting")["term"] == 1


async def test_a_candidate_that_knows_when_a_duty_is_free_does_not_try_before(leaders, database):
    """And needs no connection meanwhile."""
    term = database.term("counting", ttl=600.0)
    candidate = leaders(duties=[Counting()])
    candidate.hint(600.0)
    connected = "select count(*) from pg_stat_activity where application_name = 'tenure leader' and datname = current_database()"
    await until(lambda: database.sql(connected), is_=[(0,)])
    database.end_term("counting")
    candidate.hint(-1.0)
    await until(lambda: candidate.duties_held, is_=["counting"])
    assert lease(database, "counting")["term"] == term.term + 1


async def test_what_a_candidate_hears_while_it_asks_is_newer_than_the_answer(leaders, database, monkeypatch):
    database.term("counting", ttl=600.0)
    asked, heard = asyncio.Event(), asyncio.Event()

    class Slow(Election):
        async def acquire(self, link: Link, duties: Any, **more: Any) -> Any:
            answer = await super().acquire(link, duties, **more)
            asked.set()
            await heard.wait()
            return answer

    monkeypatch.setattr(leading, "Election", Slow)
    candidate = leaders(duties=[Counting()])
    await asked.wait()
    database.end_term("counting")
    candidate.on_wakeup(Wakeup.duty_free())
    heard.set()
    await until(lambda: candidate.duties_held, is_=["counting"], within=5.0)


# Stale leaders


def test_two_hundred_overlaps_and_no_stale_write(dsn, database):
    """A new holder takes over while the old one, which does not know that, continues to write as fast as it can."""
    database.sql("create table public.audit (said bigint, was bigint)")
    database.sql(
        """create function public.audit() returns trigger language plpgsql as $$ begin
             insert into public.audit
             select current_setting('application_name')::bigint, l.term from tenure.leases l where l.name = 'stager';
             return null; end $$"""
    )
    database.sql("create trigger audit after update on tenure.jobs for each row execute function public.audit()")
    database.enqueue(*({"delay": 3600} for _ in range(3000)))
    database.sql("alter table tenure.jobs disable trigger audit")
    database.sql("update tenure.jobs set run_at = now()")
    database.sql("alter table tenure.jobs enable trigger audit")
    current, done = [database.term("stager")], threading.Event()

    def go_on() -> None:
        """Under the term it won last, or one that is over."""
        with Database(dsn) as mine:
            number = 0
            while not done.is_set():
                number += 1
                term = current[max(0, len(current) - 1 - number % 3)]
                mine.sql(f"set application_name = '{term.term}'")
                mine.run(jobs.promote(term, limit=1))

    threads = [threading.Thread(target=go_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        before = database.sql("select count(*) from public.audit")[0][0]
        holder = str(uuid4())
        database.run(leases.acquire(holder, [("stager", 60.0)], forced=True))
        [(number,)] = database.sql("select term from tenure.leases where name = 'stager'")
        current.append(Term("stager", holder, number, 60.0))
        while number % 20 == 0 and database.sql("select count(*) from public.audit")[0][0] == before:
            pass  # the new one does work
    done.set()
    for thread in threads:
        thread.join()
    assert database.sql("select count(*) > 20, count(*) filter (where said <> was) from public.audit") == [(True, 0)]
    database.sql("drop trigger audit on tenure.jobs; drop function public.audit(); drop table public.audit")


# Strategies


async def test_shared_duties_are_done_by_all_and_the_others_by_one(leaders, database):
    ours = [leaders(settings={"strategy": "shared"}) for _ in range(3)]
    await until(lambda: all({"stager", "reaper"} <= set(leader.duties_held) for leader in ours))
    await until(lambda: sum(len(leader.duties_held) for leader in ours), is_=3 * 2 + len(DUTIES) - 2)
    assert {lease(database, duty)["holder"] for duty in ("stager", "reaper")} == {SHARED}
    assert {lease(database, duty)["term"] for duty in ALL} == {1}


def test_sharers_promote_at_the_same_time_and_each_job_once(dsn, database, other):
    database.enqueue(*({"delay": 3600} for _ in range(6)))
    database.sql("update tenure.jobs set run_at = now() - interval '1 s'")
    term = database.term("stager", SHARED)
    with other.connection.transaction():
        assert other.run(jobs.promote(term, limit=2))[0][1] == 2
        assert database.run(jobs.promote(term, limit=100))[0][1] == 4
    assert database.sql("select count(*), count(distinct position) from tenure.jobs where state = 'pending'") == [(6, 6)]


def test_a_sharer_finds_the_lease_as_it_is_and_renews_it_when_half_is_over(database):
    term = database.term("stager", SHARED, ttl=60.0)
    [(expires,)] = database.sql("select expires_at from tenure.leases")
    assert database.term("stager", SHARED, ttl=60.0) == term
    assert database.sql("select expires_at from tenure.leases") == [(expires,)]
    database.sql("update tenure.leases set expires_at = now() + interval '20 s'")
    assert database.term("stager", SHARED, ttl=60.0) == term
    assert database.sql("select expires_at > now() + interval '50 s' from tenure.leases") == [(True,)]


async def test_by_lock_one_leads_and_the_next_as_soon_as_its_session_ends(leaders, database):
    first = leaders(settings={"strategy": "advisory"})
    await until(lambda: first.duties_held, is_=ALL)
    second = leaders(settings={"strategy": "advisory"})
    locks = f"select count(*), count(*) filter (where granted) {LEADERS_LOCKS}"
    await until(lambda: database.sql(locks), is_=[(1, 1)])
    await first.stop()
    second._elect_in(0.0)
    await until(lambda: second.duties_held, is_=ALL)
    assert {(holder, term) for holder, term in database.sql("select holder::text, term from tenure.leases")} == {
        (second.holder, 2)
    }


async def test_a_lock_lost_with_its_session_is_noticed_by_the_next_heartbeat(leaders, database):
    first = leaders(settings={"strategy": "advisory"})
    await until(lambda: first.duties_held, is_=ALL)
    database.sql(f"select pg_terminate_backend(pid) {LEADERS_LOCKS}")
    database.sql(f"select pg_advisory_lock({first._election._key})")  # another process was faster
    try:
        await until(lambda: first.duties_held, is_=[])
    finally:
        database.sql("select pg_advisory_unlock_all()")


def test_a_lock_is_refused_behind_a_pooler(dsn):
    with pytest.raises(ConfigError, match="use 'lease'"):
        Leader(DatabaseTarget.at(dsn, pooled=True), LeaderSettings(strategy="advisory"))
    with pytest.raises(ConfigError, match="lease, shared, advisory"):
        Leader(DatabaseTarget.at(dsn), LeaderSettings(strategy="dice"))  # type: ignore[arg-type]


async def test_the_hint_of_a_renewal_does_not_delay_a_candidate(leaders, database):
    database.term("counting", ttl=600.0)
    candidate = leaders(duties=[Counting()])
    await until(lambda: candidate._elect_at > leading.boottime() + 1)
    candidate.on_wakeup(Wakeup.duty_free())
    meant = candidate._elect_at
    candidate.hint(-5.0)
    assert candidate._elect_at <= meant + 0.001
    candidate.hint(9.0)
    assert candidate._elect_at > meant + 5


async def test_a_heartbeat_that_comes_when_the_round_is_being_cut_off_changes_nothing(database):
    held = terms.HeldTerm(database.term("duty", ttl=60.0), terms.boottime())
    with pytest.raises(TimeoutError):
        async with held.round():
            held._limit.reschedule(asyncio.get_running_loop().time() - 1)
            try:
                await until(lambda: False)
            except asyncio.CancelledError:
                held.renewed(terms.boottime())  # it is over all the same
                raise


async def test_a_lease_lasts_for_as_long_as_is_set(leaders, database):
    leaders(duties=[Counting()], settings={"term": 40.0})
    await until(lambda: database.sql("select count(*) from tenure.leases"), is_=[(1,)])
    assert 30 < lease(database, "counting")["left"] <= 40


async def test_a_lease_whose_heartbeat_lies_in_the_future_can_be_taken_over(leaders, database):
    """The server's clock was set back by an hour, and its holder is dead."""
    term = database.term("counting", ttl=10.0)
    hour = "interval '1 hour'"
    database.sql(f"update tenure.leases set heartbeat_at = heartbeat_at + {hour}, expires_at = expires_at + {hour}")
    leader = leaders(duties=[Counting()])
    await until(lambda: leader.duties_held, is_=["counting"])
    assert lease(database, "counting")["term"] == term.term + 1


async def test_a_candidate_does_not_believe_that_a_lease_lasts_for_an_hour(leaders, database):
    database.term("counting", ttl=600.0)
    candidate = leaders(duties=[Counting()])
    await until(lambda: candidate._elect_at > 0)
    candidate.hint(3600.0)
    assert candidate._elect_at < leading.boottime() + 60


# Failover by lock, with processes that are killed

LEADING_PROCESS = """
import asyncio, sys
from tenure.leader.leader import Leader
from tenure.leader.settings import LeaderSettings
from tenure.store.target import DatabaseTarget

async def main():
    leader = Leader(DatabaseTarget.at(sys.argv[1]), LeaderSettings(strategy="advisory"))
    leader.start()
    while True:
        leader.hint(9.0)  # as every renewal does
        await asyncio.sleep(0.1)

asyncio.run(main())
"""


@pytest.fixture
def leading_process(dsn: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    log = tmp_path / "leading.log"
    with log.open("wb") as said:
        process = subprocess.Popen([sys.executable, "-c", LEADING_PROCESS, dsn], stdout=said, stderr=said)
    yield process
    process.kill()
    process.wait()
    assert_no_secret(log.read_text())


async def test_by_lock_a_killed_leader_is_followed_long_before_its_leases_run_out(leaders, leading_process, database):
    holds = "select count(*) from tenure.leases where expires_at > clock_timestamp()"
    await until(lambda: database.sql(holds), is_=[(len(DUTIES),)])
    second = leaders(settings={"strategy": "advisory"})
    await until(lambda: second._elect_at > 0)
    leading_process.kill()

    def followed() -> bool:
        second.hint(9.0)  # a renewal returns when leases expire: that must not delay the attempt to take the lock
        return bool(second.duties_held)

    database.sql(
        "update tenure.leases set expires_at = expires_at + interval '1 hour'"
    )  # so that only the lock can be the reason
    await until(followed)
    assert second.duties_held == ALL


async def test_a_duty_whose_round_hangs_goes_to_another_and_is_not_taken_back_at_once(leaders, database, monkeypatch):
    class Hanging(Counting):
        async def run_once(self, link: Link, term: Term) -> RoundResult:
            self.rounds.append(term)
            await asyncio.sleep(600)
            raise AssertionError

    monkeypatch.setattr(leading, "STALLED", 0.5)
    first = leaders(duties=[Hanging()])
    await until(lambda: first.duties_held, is_=["counting"])
    second = leaders(duties=[duty := Counting()])
    second.on_wakeup(Wakeup.missed())
    await until(lambda: second.hint(0.0) or second.duties_held, is_=["counting"])
    await until(lambda: duty.rounds)
    assert (first.duties_held, lease(database, "counting")["term"]) == ([], 2)


async def test_what_an_unanswered_election_won_is_free_after_a_stop(leaders, database_target, database, monkeypatch):
    leader = leaders(duties=[Counting()])
    await until(lambda: leader.duties_held, is_=["counting"])
    leader._held.clear()
    leader._may_have_won = True
    await leader.stop()
    assert lease(database, "counting")["left"] <= 0
