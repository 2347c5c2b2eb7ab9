"""What a process without an event loop costs: how many connections it keeps, and how many statements an enqueue sends."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from tenure import ResultTimeout, Tenure
from tenure.client import sync_notifier
from tenure.store.sync_link import SyncLink
from tests.store.sessions import OF_TENURE

THREADS = 12
OPEN = f"select application_name {OF_TENURE} order by 1"


@pytest.fixture
def app(dsn):
    app = Tenure(dsn)

    @app.job
    def work(n: int) -> int:
        return n

    app.work = work
    yield app
    app.close_sync()


def test_connections_are_added_by_what_a_process_does_and_not_by_its_threads(app, database):
    """As docs/operations/scale.md lists them, for requests of a web process in many threads."""

    def in_threads(request):
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(request, range(4 * THREADS)))
        return [name.removeprefix("tenure ") for (name,) in database.sql(OPEN)]

    def wait(n):
        with pytest.raises(ResultTimeout):
            app.work.enqueue_sync(n).result_sync(timeout=0.01)

    assert in_threads(app.work.enqueue_sync) == ["enqueue"]
    assert in_threads(lambda n: app.work.enqueue_sync(n).status_sync()) == ["client", "enqueue"]
    assert in_threads(wait) == ["client", "enqueue", "wakeups"]
    assert in_threads(lambda _: app.client().stats_sync()) == ["client", "client", "enqueue", "wakeups"]


def test_an_enqueue_is_one_statement_on_a_connection_that_stays_open(app, database, monkeypatch):
    app.work.enqueue_sync(0)
    pid = "select pid from pg_stat_activity where datname = current_database() and application_name = 'tenure enqueue'"
    before, sent, fetch = database.sql(pid), [], SyncLink.fetch

    def counted(self, query, *, deadline):
        sent.append(query.name)
        return fetch(self, query, deadline=deadline)

    monkeypatch.setattr(SyncLink, "fetch", counted)
    monkeypatch.setattr(sync_notifier, "next_gap", lambda _gap, _calls: 0.5)  # 5 ms may be over before the next enqueue
    for n in range(20):
        app.work.enqueue_sync(n)
    others = [name for name in sent if not name.startswith("jobs/enqueue")]
    assert len(sent) - len(others) == 20
    assert set(others) <= {"queues/notify_after"}, "notifications are sent for several enqueues at once"
    assert len(others) < 20
    assert database.sql(pid) == before


def test_an_enqueue_in_the_caller_s_transaction_is_one_round_trip(app, dsn, tmp_path):
    with closing(psycopg.connect(dsn)) as connection, (tmp_path / "messages").open("w") as messages:
        for n in range(10):  # the first finds out which database the connection leads to, and psycopg prepares the sixth
            app.work.using(conn=connection).enqueue_sync(n)
        connection.pgconn.trace(messages.fileno())
        for n in range(20):
            app.work.using(conn=connection).enqueue_sync(n)
        connection.pgconn.untrace()
        connection.commit()
    answered = re.findall(r"^.*\tB\t\d+\tReadyForQuery", (tmp_path / "messages").read_text(), re.MULTILINE)
    assert len(answered) == 20
