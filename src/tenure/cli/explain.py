"""`tenure explain`."""

from __future__ import annotations

import shlex

import click

from tenure.cli import output
from tenure.cli.command_context import CommandContext, with_context
from tenure.client.explain import Explanation
from tenure.client.status import JobStatus

REMEDIES = {
    "finished": "tenure jobs retry {job.id}  # runs it again as a new job",
    "dead_letter": "tenure jobs replay {job.id}",
    "not_due": "tenure jobs retry {job.id}  # runs it now",
    "running": "tenure watch {job.id}",
    "blocked": "tenure chains show {job.id}",
    "blocker_failed": "tenure jobs list --state dead_letter",
    "open_group": "tenure jobs cancel {job.id}",
    "paused": "tenure queues resume {queue}",
    "no_worker": "tenure worker --app MODULE:APP",
    "no_worker_for_queue": "tenure worker --app MODULE:APP --queues {queue}",
}
"""The command that helps, by the code of the reason."""


@click.command()
@with_context
@click.argument("job_id", metavar="ID")
async def explain(context: CommandContext, job_id: str) -> None:
    """Show why a job is not running, and which command helps."""
    explanation = await context.client.explain((await context.find(job_id)).id)
    if context.as_json:
        output.print_json(explanation.to_json())
    else:
        _show(explanation)


def _show(explanation: Explanation) -> None:
    job = explanation.job
    click.echo(output.safe(f"{job.kind}  {job.id}  {job.state}"))
    for reason in explanation.reasons:
        click.echo(f"- {output.safe(reason.fact)}")
        if remedy := _remedy(reason.code, job):
            click.echo(f"    {remedy}")


def _remedy(code: str, job: JobStatus) -> str | None:
    known = REMEDIES.get(code)
    return known and output.safe(known.format(job=job, queue=shlex.quote(job.queue)))
