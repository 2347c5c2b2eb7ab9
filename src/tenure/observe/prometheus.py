"""Metrics of `tenure worker` and `tenure up` for Prometheus: served by the supervisor, which runs no user code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

from tenure.model.claim_counts import CLAIM_BOUNDS, ClaimCount
from tenure.model.errors import ConfigError
from tenure.model.exposition import CONTENT_TYPE, histogram_samples, metric
from tenure.model.run_counts import BOUNDS, ProcessMetrics, RunCount, SupervisorMetrics
from tenure.version import __version__

log = logging.getLogger("tenure")

LOOPBACK = "127.0.0.1"
REQUEST_WITHIN = 5.0
"""Seconds for a request and its answer. A slow client must not hold connections for longer."""
LONGEST_LINE = 8192


@asynccontextmanager
async def serving_metrics(address: str | None, measure: Callable[[], SupervisorMetrics]) -> AsyncIterator[None]:
    """Serves `GET /metrics` while the block lasts. Without an address, it does nothing."""
    if address is None:
        yield
        return
    host, port = host_and_port(address)
    try:
        server = await asyncio.start_server(partial(_answer, measure), host, port, limit=LONGEST_LINE)
    except OSError as error:
        raise ConfigError(f"--metrics-port {address}: {error.strerror or error}; choose another port") from error
    bound = server.sockets[0].getsockname()[1]
    log.info("serving metrics", extra={"url": f"http://{host}:{bound}/metrics"})
    async with server:
        yield


def host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise ConfigError(f"--metrics-port is {address!r}, but must be a port or HOST:PORT, such as 9464 or 0.0.0.0:9464")
    return host.strip("[]") or LOOPBACK, int(port)


async def _answer(measure: Callable[[], SupervisorMetrics], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(REQUEST_WITHIN):
                request = (await reader.readline()).decode("latin-1").split()
                while (await reader.readline()).strip():
                    pass
                writer.write(_response(request, measure))
                await writer.drain()
    except Exception:
        log.exception("metrics could not be served")
    finally:
        writer.close()


def _response(request: list[str], measure: Callable[[], SupervisorMetrics]) -> bytes:
    if len(request) != 3 or request[0] not in ("GET", "HEAD"):
        return _http("405 Method Not Allowed", "only GET is answered here\n")
    if request[1].partition("?")[0] != "/metrics":
        return _http("404 Not Found", "see /metrics\n")
    return _http("200 OK", render(measure()), body=request[0] == "GET")


def _http(status: str, text: str, *, body: bool = True) -> bytes:
    content = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (content if body else b"")


def render(measured: SupervisorMetrics) -> str:
    lines = [*metric("tenure_worker_info", "gauge", "The version of the workers.", [({"version": __version__}, 1)])]
    for family in (_processes(measured.processes), _health(measured), _claims(measured.claims), _runs(measured.runs)):
        lines.extend(family)
    return "\n".join([*lines, ""])


def _processes(processes: Sequence[ProcessMetrics]) -> Iterator[str]:
    pools = sorted({process.pool for process in processes})

    def by_pool(value: Callable[[ProcessMetrics], float]) -> list[tuple[dict[str, str], float]]:
        return [({"pool": pool}, sum(value(one) for one in processes if one.pool == pool)) for pool in pools]

    yield from metric("tenure_worker_processes", "gauge", "Processes that run jobs.", by_pool(lambda _: 1))
    yield from metric("tenure_worker_slots", "gauge", "Jobs that they can run at a time.", by_pool(lambda one: one.slots))
    yield from metric("tenure_worker_slots_busy", "gauge", "Jobs that they run.", by_pool(lambda one: one.running))
    yield from metric(
        "tenure_worker_outcomes_unwritten",
        "gauge",
        "Outcomes of runs that are not written yet.",
        by_pool(lambda one: one.unwritten),
    )
    yield from metric(
        "tenure_worker_process_resident_memory_bytes",
        "gauge",
        "Memory of each process.",
        [({"pool": one.pool, "process": one.name}, round(one.memory_mb * (1 << 20))) for one in processes],
    )


def _health(measured: SupervisorMetrics) -> Iterator[str]:
    yield from metric(
        "tenure_worker_process_deaths_total",
        "counter",
        "Processes that ended without having been asked to.",
        [({}, measured.deaths)],
    )
    yield from metric(
        "tenure_worker_reconnects_total",
        "counter",
        "Connections to PostgreSQL that were made again after they had been lost.",
        [({}, measured.reconnects + sum(count.reconnects for count in measured.claims.values()))],
    )
    yield from metric(
        "tenure_worker_jobs_requeued_total",
        "counter",
        "Jobs that this supervisor took from workers that died, by reason.",
        [({"queue": job.queue, "kind": job.kind, "why": job.why}, jobs) for job, jobs in measured.requeued.items()],
    )
    yield from metric(
        "tenure_worker_lease_renewal_age_seconds",
        "gauge",
        "Since the leases were last renewed: grows while PostgreSQL cannot be reached.",
        [] if measured.renewed_ago is None else [({}, measured.renewed_ago)],
    )


def _claims(counts: Mapping[str, ClaimCount]) -> Iterator[str]:
    name = "tenure_worker_claim_seconds"
    yield f"# HELP {name} Duration of claims, also of those that found no job."
    yield f"# TYPE {name} histogram"
    for pool, count in sorted(counts.items()):
        buckets = list(zip([*CLAIM_BOUNDS, float("inf")], count.buckets, strict=True))
        yield from histogram_samples(name, {"pool": pool}, buckets, count.seconds)


def _runs(counts: Sequence[RunCount]) -> Iterator[str]:
    yield from metric(
        "tenure_worker_runs_total",
        "counter",
        "Runs that ended here, by outcome.",
        [({"queue": one.queue, "kind": one.kind, "outcome": one.outcome}, one.runs) for one in counts],
    )
    name = "tenure_worker_run_seconds"
    yield f"# HELP {name} Duration of runs."
    yield f"# TYPE {name} histogram"
    for queue, kind in sorted({(one.queue, one.kind) for one in counts}):
        alike = [one for one in counts if (one.queue, one.kind) == (queue, kind)]
        sums = [sum(column) for column in zip(*(one.buckets for one in alike), strict=True)]
        buckets = list(zip([*BOUNDS, float("inf")], sums, strict=True))
        yield from histogram_samples(name, {"queue": queue, "kind": kind}, buckets, sum(one.seconds for one in alike))
