"""`tenure doctor`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import click

from tenure.cli import output
from tenure.cli.asking import Asker, asks
from tenure.client.overview import LeaderStatus, WorkerStatus
from tenure.model.health import Probe


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    text: str


@click.command()
@asks
async def doctor(ask: Asker) -> None:
    """What slows or stops the work, or soon will: old snapshots, dead rows, missing partitions, stuck leaders, lost workers.

    Exit code 1 when there is anything to see to.
    """
    found = findings(await ask.client.probe(), await ask.client.leaders(), await ask.client.workers())
    if ask.as_json:
        output.emit({"healthy": not found, "findings": found})
    elif found:
        for finding in found:
            click.echo(f"{finding.code}: {finding.text}")
    else:
        output.say("nothing to see to")
    if found:
        click.get_current_context().exit(1)


def findings(probe: Probe, leaders: list[LeaderStatus], workers: list[WorkerStatus]) -> list[Finding]:
    probe = replace(probe, deaf=_is_deaf(probe, leaders))
    found = [Finding(code, text) for code, text in probe.findings.items()]
    alive = [worker for worker in workers if worker.alive]
    if not alive:
        found.append(Finding("no_workers", "no worker is alive, so nothing runs: start one with `tenure worker`"))
    late = [worker for worker in workers if not worker.alive]
    if late:
        named = ", ".join(f"{worker.host}:{worker.pid}" for worker in late[:5])
        told = f"{len(late)} workers are lost ({named}); their jobs come back when the reaper has seen to them"
        found.append(Finding("lost_workers", told))
    if alive:
        found += [_led(leader) for leader in leaders if leader.stuck or not leader.holds]
    return found


def _led(leader: LeaderStatus) -> Finding:
    where = f"{leader.metadata.get('host')}:{leader.metadata.get('pid')}"
    if leader.stuck:
        error = leader.metadata.get("last_error")
        return Finding(
            "stuck_leader",
            f"{leader.duty} is led by {where}, whose heart beats, but its round is overdue"
            + (f" (last error: {error})" if error else "")
            + "; restart that process, and another takes over",
        )
    return Finding("no_leader", f"nobody does {leader.duty}; {where} had it last. A worker takes it over within seconds")


def _is_deaf(probe: Probe, leaders: list[LeaderStatus]) -> bool:
    """Only a process that listens can tell that NOTIFY does not arrive: whoever leads the doctor's duty has said so."""
    words = replace(probe, deaf=True).findings["deaf"]
    return any(leader.holds and words in leader.metadata.get("findings", ()) for leader in leaders)
