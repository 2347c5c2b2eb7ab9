"""`tenure doctor`."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import click

from tenure.cli import exit_codes, output
from tenure.cli.command_context import CommandContext, with_context
from tenure.client.locked_tables import locked_tables
from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.model.errors import ConfigError, SchemaMismatch, StoreUnavailable, TenureError
from tenure.model.findings import Finding
from tenure.model.health import NOTIFY_NOT_DELIVERED

WITHIN = 20.0
"""Seconds for all checks, and again to find out what they have waited for."""


@click.command()
@with_context
async def doctor(context: CommandContext) -> int:
    """Find what slows or stops jobs, or soon will.

    Checks the schema, indexes, partitions, vacuum, old transactions, replication slots, settings, workers and leaders, and looks
    for jobs that no worker can run. Every finding has a code and a remedy. Exit code 1 if there is a problem; notes do not
    count. It ends within 40 s, also if a table is locked. Exit code 4 if the database has no schema for this version.
    """
    code = exit_codes.FAILED
    try:
        found = await examine_within(context, WITHIN)
    except ConfigError:
        raise
    except TimeoutError:
        found = [_too_slow(2 * WITHIN, "")]
    except TenureError as error:
        # A finding as well, so that a probe reads the same document in every case.
        found, code = [_blocking(error)], exit_codes.of_error(error)
    problems = [finding for finding in found if finding.severity == "problem"]
    if context.as_json:
        output.print_json({"healthy": not problems, "findings": found})
    for finding in [] if context.as_json else found:
        click.echo(f"{finding.code}{' (note)' if finding.severity == 'note' else ''}: {output.safe(finding.text)}")
        click.echo(f"    {output.safe(finding.way_out)}")
    if not found and not context.as_json:
        output.note("no problems found")
    return code if problems else exit_codes.SUCCESS


async def examine_within(context: CommandContext, seconds: float) -> list[Finding]:
    """What it found, or what keeps it from looking: locks of tables, for which statements wait without end."""
    try:
        async with asyncio.timeout(seconds):
            return await examine(context)
    except TimeoutError:
        async with asyncio.timeout(seconds):
            locked = await locked_tables(context.app._runtime.session())  # noqa: SLF001 - of the same process
            return locked or [_too_slow(seconds, ", and no session has locked a table of Tenure against reads")]


def _too_slow(seconds: float, more: str) -> Finding:
    text = f"the checks were not done within {seconds:g} s{more}"
    return Finding("too_slow", text, "look at the load of the server and at pg_stat_activity, then run this again")


async def examine(context: CommandContext) -> list[Finding]:
    probe = await context.client.probe()
    if any(finding.code == "old_schema" for finding in probe.findings):
        return probe.findings  # other statements may not work with that schema
    leaders, workers = await context.client.leaders(), await context.client.workers()
    return [*of_workers(workers, leaders), *replace(probe, not_delivering=_not_delivering(leaders)).findings]


def _blocking(error: TenureError) -> Finding:
    """What kept the doctor from looking at the database."""
    if isinstance(error, StoreUnavailable):
        return Finding("unreachable", str(error), "check the server and the DSN (`tenure config` shows it), then run this again")
    if isinstance(error, SchemaMismatch):
        return Finding("schema_mismatch", str(error), "run `tenure migrate`, or correct the DSN (`tenure config` shows it)")
    return Finding("refused", str(error), "grant what is missing (`tenure sql --roles` prints the grants), or correct the DSN")


def of_workers(workers: list[WorkerStatus], leaders: list[LeaderStatus]) -> list[Finding]:
    found = []
    alive = [worker for worker in workers if worker.alive]
    if not alive:
        found.append(Finding("no_workers", "no worker is alive, so no job runs", "start one: tenure worker"))
    late = [worker for worker in workers if not worker.alive]
    if late:
        named = ", ".join(worker.name for worker in late[:5])
        text = f"{len(late)} workers are lost ({named}) and may still hold jobs"
        found.append(Finding("lost_workers", text, "the reaper requeues their jobs within seconds: see `tenure leaders`"))
    if alive:
        found += [_leader_finding(leader) for leader in leaders if leader.is_duty and (leader.stuck or not leader.holds)]
    return found


def _leader_finding(leader: LeaderStatus) -> Finding:
    where = f"{leader.metadata.get('host')}:{leader.metadata.get('pid')}"
    if leader.stuck:
        error = leader.metadata.get("last_error")
        text = f"{leader.duty} is held by {where}, which sends heartbeats, but its round is overdue"
        way_out = "restart it, so that another process takes over; see its log"
        return Finding("stuck_leader", text + (f" (last error: {error})" if error else ""), way_out)
    text = f"no process holds {leader.duty}; {where} held it last"
    return Finding("no_leader", text, "a worker takes it over within seconds; run `tenure doctor` again")


def _not_delivering(leaders: list[LeaderStatus]) -> bool:
    """Only a listening process can notice that NOTIFY does not arrive: the holder of the doctor's duty records it."""
    return any(
        leader.holds and any(finding.code == NOTIFY_NOT_DELIVERED.code for finding in leader.findings) for leader in leaders
    )
