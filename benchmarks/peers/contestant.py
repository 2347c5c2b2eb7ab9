"""One queue in its own database, and each step that is measured on it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from benchmarks.figures import Figures
from benchmarks.peers.protocol import Described, Timed
from benchmarks.peers.scripts import PeerFailedError, Script, WorkerGroup
from benchmarks.peers.sizes import PeerSizes
from benchmarks.server import Probe, Server

WARMUP = 10  # first timed jobs that open connections and are not counted
POLL = 0.005  # seconds
SETTLE = 0.5  # seconds between the enqueue and the start
REST = 2.0  # seconds for a worker to become idle
PATIENCE = 300.0  # seconds for a drain
GONE = 15.0  # seconds for the connections of a stopped worker to close

OTHERS = """select count(*) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"""


@dataclass
class Contestant:
    server: Server
    script: Script
    described: Described
    sizes: PeerSizes
    figures: Figures
    dsn: str = ""
    """Of this round's database."""
    _enqueued: int = 0
    """In this database, ever."""
    _backlog: int = 0
    """Of them, not yet drained."""

    @property
    def name(self) -> str:
        return self.script.candidate.name

    @contextmanager
    def in_new_database(self) -> Iterator[None]:
        with self.server.bare_database() as dsn:
            self.dsn, self._enqueued, self._backlog = url(dsn), 0, 0
            self.script.prepare(self.dsn)
            yield

    def enqueue_single(self) -> None:
        timed = self._enqueue("enqueue-single", self.sizes.singles)
        self._add("single", timed.timed / timed.seconds)

    def enqueue_bulk(self, key: str) -> None:
        self.server.checkpoint()
        with self._costs(key) as costs:
            timed = self._enqueue("enqueue-bulk", max(1, round(self.sizes.jobs * self.script.candidate.share)))
            costs.jobs = timed.jobs
        self._add(key, timed.timed / timed.seconds)
        with Probe(self.dsn) as probe:
            probe.rows("analyze")  # as autovacuum does

    def drain(self, processes: int) -> None:
        """Everything that has been enqueued since the last drain."""
        with self.script.worker(self.dsn, processes, self.described) as worker, Probe(self.dsn) as probe:
            time.sleep(SETTLE)
            with self._costs(f"drain_{processes}") as costs:
                costs.jobs = jobs = self._backlog
                used, began = worker.cpu(), time.perf_counter()
                worker.go()
                self._await_drained(probe, worker)
                seconds, used = time.perf_counter() - began, worker.cpu() - used
            self._close(worker, probe)
        self._add(f"drain_{processes}", jobs / seconds)
        self._add(f"drain_{processes}_worker_cpu", used / jobs * 1e6)
        self._check_success()

    def wake_up(self) -> None:
        """An idle worker, and a job now and then."""
        with Probe(self.dsn) as probe:
            probe.rows("vacuum (analyze)")  # else autovacuum would do it during the measurement
        self._ages("wakeup", "pulse", self.sizes.wakeups)

    def steady(self) -> None:
        before = self.server.commits(self.dsn)
        own = self._ages("steady", "steady", self.sizes.steady)
        transactions = self.server.commits(self.dsn) - before - own
        self._add("steady_transactions", transactions / (WARMUP + self.sizes.steady))

    def _ages(self, key: str, command: str, count: int) -> int:
        """Returns how many statements this process sent meanwhile."""
        count += WARMUP
        with self.script.worker(self.dsn, 1, self.described) as worker, Probe(self.dsn) as probe:
            worker.go()
            time.sleep(REST)
            with self._costs(key) as costs:
                costs.jobs = self._enqueue(command, count).jobs
                self._await_drained(probe, worker)
            ages = worker.ages
            self._close(worker, probe)
            own = probe.statements
        if len(ages) != count:
            raise PeerFailedError(f"{len(ages)} of {count} handlers printed the age of their job")
        cuts = statistics.quantiles(ages[WARMUP:], n=100, method="inclusive")
        self._add(f"{key}_p50", cuts[49])
        self._add(f"{key}_p99", cuts[98])
        return own

    def _enqueue(self, command: str, count: int) -> Timed:
        timed = self.script.enqueue(command, self.dsn, count, self.sizes.rate)
        self._enqueued += timed.jobs
        self._backlog += timed.jobs
        return timed

    def _await_drained(self, probe: Probe, worker: WorkerGroup) -> None:
        deadline = time.monotonic() + PATIENCE
        while probe.rows(self.described.left.replace("%(jobs)s", str(self._enqueued))):
            worker.demand_alive()
            if time.monotonic() > deadline:
                raise PeerFailedError(f"jobs are left after {PATIENCE:.0f} s")
            time.sleep(POLL)
        self._backlog = 0

    def _check_success(self) -> None:
        """Jobs that fail are gone too, and sooner."""
        if self.described.succeeded is not None:
            with Probe(self.dsn) as probe:
                succeeded = probe.one(self.described.succeeded)
            if succeeded != self._enqueued:
                raise PeerFailedError(f"{succeeded} of {self._enqueued} jobs succeeded")

    def _close(self, worker: WorkerGroup, probe: Probe) -> None:
        """Backends that have ended have reported their transactions."""
        worker.request_stop()
        deadline = time.monotonic() + GONE
        while probe.one(OTHERS) and time.monotonic() < deadline:
            time.sleep(0.05)

    @contextmanager
    def _costs(self, key: str) -> Iterator[Costs]:
        """Of all processes of the server meanwhile."""
        costs = Costs(self.server.wal(), self.server.cpu())
        yield costs
        self._add(f"{key}_wal", (self.server.wal() - costs.wal) / costs.jobs)
        cpu = self.server.cpu()
        if cpu is not None and costs.cpu is not None:
            self._add(f"{key}_cpu", (cpu - costs.cpu) / costs.jobs * 1e6)

    def _add(self, key: str, value: float) -> None:
        self.figures.add(figure_of(self.name, key), value)


@dataclass
class Costs:
    wal: int
    cpu: float | None
    jobs: int = 1


def figure_of(name: str, key: str) -> str:
    return f"{name} {key}"


def url(dsn: str) -> str:
    """The form that every driver reads."""
    parts = {name: quote(str(value), safe="") for name, value in conninfo_to_dict(dsn).items()}
    user, password = parts.pop("user", ""), parts.pop("password", "")
    login = f"{user}:{password}@" if password else f"{user}@"
    name, parameters = parts.pop("dbname", ""), "&".join(f"{name}={value}" for name, value in parts.items())
    return f"postgresql://{login}/{name}?{parameters}"
