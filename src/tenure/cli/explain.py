"""`tenure explain`."""

from __future__ import annotations

import shlex

import click

from tenure.cli import output
from tenure.cli.asking import Asker, asks
from tenure.client.explain import Explanation
from tenure.client.status import JobStatus

WAYS_OUT = {
    "finished": "tenure jobs retry {job.id}  # runs it again as a new job",
    "dead_letter": "tenure jobs replay {job.id}",
    "not_due": "tenure jobs retry {job.id}  # runs it now",
    "running": "tenure watch {job.id}",
    "paused": "tenure queues resume {queue}",
    "no_worker": "tenure worker",
    "no_worker_for_queue": "tenure worker --queues {queue}",
}
"""What to type, by the code of the reason."""


@click.command()
@asks
@click.argument("job_id", metavar="ID")
async def explain(ask: Asker, job_id: str) -> None:
    """Why is this job not running? All that stands in its way, and what to do about it."""
    told = await ask.client.explain((await ask.find(job_id)).id)
    if ask.as_json:
        output.emit(told.to_json())
    else:
        _show(told)


def _show(told: Explanation) -> None:
    job = told.job
    click.echo(output.safe(f"{job.kind}  {job.id}  {job.state}"))
    for reason in told.reasons:
        click.echo(f"- {output.safe(reason.fact)}")
        if way_out := _way_out(reason.code, job):
            click.echo(f"    {way_out}")


def _way_out(code: str, job: JobStatus) -> str | None:
    known = WAYS_OUT.get(code)
    return known and output.safe(known.format(job=job, queue=shlex.quote(job.queue)))
