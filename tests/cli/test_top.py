"""tenure top."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from psycopg.conninfo import conninfo_to_dict
from rich.console import Console

from tenure.cli.top_frame import frame
from tenure.client.fleet_snapshot import FleetSnapshot, QueueSnapshot
from tenure.client.overview import LeaderStatus, WorkerStatus
from tests.cli.started import started

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
TOTALS = {"pending": 1234, "running": 7, "slots": 20, "rate": 45.6}


def queue_line(name="default", **more) -> QueueSnapshot:
    counts = dict.fromkeys(("pending", "running", "scheduled", "retry", "dead"), 0)
    return QueueSnapshot(**{"name": name, "paused": False, "oldest_seconds": None, "rate": 0.0, **counts, **more})


def worker(**more) -> WorkerStatus:
    times = dict.fromkeys(("started_at", "heartbeat_at", "expires_at"), NOW - timedelta(seconds=3))
    told = {"host": "box", "pid": 42, "queues": ["default"], "kinds": [], "capabilities": [], "concurrency": 10, "version": "1"}
    state = {"died_at": None, "died_how": None, "alive": True, "held": 7}
    return WorkerStatus(**{"id": uuid4(), "supervisor_id": uuid4(), **times, **told, **state, **more})


def leader(**more) -> LeaderStatus:
    times = dict.fromkeys(("acquired_at", "heartbeat_at", "expires_at"), NOW - timedelta(minutes=2))
    told = {"duty": "stager", "holder": uuid4(), "term": 3, "metadata": {"host": "box", "pid": 7}, "holds": True, "stuck": False}
    return LeaderStatus(**{**times, **told, **more})


def drawn(snapshot: FleetSnapshot, width: int = 100, **more) -> str:
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as told:
        console.print(frame(snapshot, **more))
    return told.get()


def snapshot(**more) -> FleetSnapshot:
    return FleetSnapshot(**{"at": NOW, "queues": [], "workers": [], "leaders": [], "totals": TOTALS, **more})


def test_a_frame_shows_queues_workers_and_leaders():
    shown = drawn(
        snapshot(
            queues=[
                queue_line(pending=1234, running=7, oldest_seconds=61.0, rate=45.6),
                queue_line("mail", paused=True, dead=3, scheduled=5, retry=2),
            ],
            workers=[worker(), worker(pid=43, alive=False, died_how="crashed", held=0)],
            leaders=[leader(), leader(duty="reaper", holds=False)],
        )
    )
    lines = [line.split() for line in shown.splitlines()]
    assert ["default", "1,234", "7", "-", "-", "-", "1", "m", "45.6"] in lines
    assert ["mail", "(paused)", "-", "-", "5", "2", "3", "-", "-"] in lines
    assert ["box:42", "7/10", "3", "s", "ago", "default"] in lines
    assert ["box:43", "0/10", "crashed", "default"] in lines
    assert ["stager", "box:7", "3", "2", "m", "ago"] in lines
    assert "none: the lease of box:7 expired" in shown
    assert "7 of 20 running" in shown


def test_nothing_is_there():
    shown = drawn(snapshot())
    for words in ("no queues", "no workers", "no leaders"):
        assert words in shown


def test_a_small_screen_is_not_overrun_and_foreign_names_act_on_no_terminal():
    queues = [queue_line(f"q{n}\x1b[31m") for n in range(50)]
    shown = drawn(snapshot(queues=queues), width=60, rows=5)
    assert "and 45 more" in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_what_went_wrong_stands_beneath_the_last_that_was_seen():
    assert "PostgreSQL cannot be reached" in drawn(snapshot(), trouble="PostgreSQL cannot be reached")


def test_one_snapshot_for_programs(line, enqueue_job, database):
    enqueue_job(queue="mail")
    enqueue_job(queue="mail", delay="1h")
    database.worker()
    database.term("stager")
    told = line.json("top")
    [mail] = told["queues"]
    assert (mail["name"], mail["pending"], mail["scheduled"]) == ("mail", 1, 1)
    assert mail["oldest_seconds"] >= 0
    assert [one["concurrency"] for one in told["workers"]] == [10]
    assert [one["duty"] for one in told["leaders"]] == ["stager"]
    assert told["totals"]["slots"] == 10


def test_the_rate_is_what_ended_between_two_looks(line, database, monkeypatch):
    from tenure.cli import top

    ended = "insert into tenure.tallies (queue, kind, what, jobs) values ('mail', 'k', 'completed', 500)"
    database.sql(ended)

    async def meanwhile(seconds):
        database.sql(ended)

    monkeypatch.setattr(top.asyncio, "sleep", meanwhile)
    [mail] = line.json("top")["queues"]
    assert mail["rate"] > 25  # 500 between two looks, with at most 20 s between them


def test_without_a_terminal_it_is_one_frame(line, enqueue_job):
    enqueue_job(queue="mail")
    shown = line("top")
    assert shown.exit_code == 0
    assert "mail" in shown.stdout
    assert "\x1b" not in shown.stdout


@pytest.mark.slow
def test_on_a_terminal_it_is_live_survives_an_outage_and_ends_with_ctrl_c(tmp_path, fresh_dsn, server_dsn):
    import psycopg

    name = conninfo_to_dict(fresh_dsn)["dbname"]
    with started(tmp_path, "top", "--every", "200ms", columns=100, TENURE_DSN=fresh_dsn) as top:
        assert top.says("no queues")
        with psycopg.connect(server_dsn, autocommit=True) as admin:
            admin.execute(f"alter database {name} allow_connections false")
            admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
            assert top.says("retrying")
            admin.execute(f"alter database {name} allow_connections true")
        with psycopg.connect(fresh_dsn, autocommit=True) as connection:
            connection.execute("""select tenure.enqueue('[{"kind": "work", "queue": "newcomer"}]')""")
        assert top.says("newcomer")
        top.signal(signal.SIGINT)
        assert top.ends(20) == 0
