"""`tenure doctor`."""

from __future__ import annotations

from dataclasses import replace

import click

from tenure.cli import codes, output
from tenure.cli.asking import Asker, asks
from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.model.findings import Finding
from tenure.model.health import DEAF


@click.command()
@asks
async def doctor(ask: Asker) -> int:
    """Find what slows or stops the work, or soon will.

    Looks at the schema, indexes, partitions, vacuum, old transactions, replication slots, settings, workers and leaders, and at
    jobs that no worker can run. Every finding has a code, and what to do. Exit code 1 when there is a problem; notes alone are
    none.
    """
    found = await examine(ask)
    problems = [finding for finding in found if finding.severity == "problem"]
    if ask.as_json:
        output.emit({"healthy": not problems, "findings": found})
    for finding in [] if ask.as_json else found:
        click.echo(f"{finding.code}{' (note)' if finding.severity == 'note' else ''}: {output.safe(finding.text)}")
        click.echo(f"    {output.safe(finding.way_out)}")
    if not found and not ask.as_json:
        output.say("no problem found")
    return codes.FAILED if problems else codes.FINE


async def examine(ask: Asker) -> list[Finding]:
    probe = await ask.client.probe()
    if any(finding.code == "old_schema" for finding in probe.findings):
        return probe.findings  # other statements may not fit that schema
    leaders, workers = await ask.client.leaders(), await ask.client.workers()
    return [*of_workers(workers, leaders), *replace(probe, deaf=_is_deaf(leaders)).findings]


def of_workers(workers: list[WorkerStatus], leaders: list[LeaderStatus]) -> list[Finding]:
    found = []
    alive = [worker for worker in workers if worker.alive]
    if not alive:
        found.append(Finding("no_workers", "no worker is alive, so nothing runs", "start one: tenure worker"))
    late = [worker for worker in workers if not worker.alive]
    if late:
        named = ", ".join(worker.name for worker in late[:5])
        told = f"{len(late)} workers are lost ({named}) and may still hold jobs"
        found.append(Finding("lost_workers", told, "the reaper requeues their jobs within seconds: see `tenure leaders`"))
    if alive:
        found += [_led(leader) for leader in leaders if leader.is_duty and (leader.stuck or not leader.holds)]
    return found


def _led(leader: LeaderStatus) -> Finding:
    where = f"{leader.metadata.get('host')}:{leader.metadata.get('pid')}"
    if leader.stuck:
        error = leader.metadata.get("last_error")
        told = f"{leader.duty} is held by {where}, which sends heartbeats, but its round is overdue"
        way_out = "another process takes over if it is restarted; see its log"
        return Finding("stuck_leader", told + (f" (last error: {error})" if error else ""), way_out)
    told = f"no process does {leader.duty}; {where} did it last"
    return Finding("no_leader", told, "a worker takes it over within seconds; look again")


def _is_deaf(leaders: list[LeaderStatus]) -> bool:
    """Only a process that listens can know that NOTIFY does not arrive: the holder of the doctor's duty has said so."""
    return any(
        leader.holds and any(line.startswith(f"{DEAF.code}: ") for line in leader.metadata.get("findings", ()))
        for leader in leaders
    )
