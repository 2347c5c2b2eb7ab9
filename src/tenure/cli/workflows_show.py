"""`tenure workflows list` and `show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

import click

from tenure.cli import options, output
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.output import Column
from tenure.cli.workflow_words import LONGEST_RESULT, result_words, wait_words
from tenure.client.report.words import gist, inline, span, value
from tenure.client.status import JobStatus
from tenure.client.workflow_status import StepStatus, WorkflowStatus
from tenure.flow.svg import workflow_svg
from tenure.model.states import State
from tenure.model.system_data import SystemData

LIST = (
    Column("ID"),
    Column("STATE"),
    Column("WORKFLOW", flexible=True),
    Column("WAITS FOR", flexible=True),
    Column("WHEN", right=True),
)
STEPS = (
    Column("STEP", flexible=True),
    Column("WHAT"),
    Column("STATE"),
    Column("TRIES", right=True, optional=True),
    Column("TOOK", right=True, optional=True),
    Column("WHEN", right=True),
    Column("RESULT", flexible=True, optional=True),
)


@click.command("list")
@with_context
@click.option("--kind", help="Only this workflow.")
@click.option("--state", type=click.Choice([state.value for state in State]), multiple=True, help="Only in these states.")
@click.option("--limit", "-n", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many to list.")
async def list_(context: CommandContext, kind: str | None, state: tuple[str, ...], limit: int) -> None:
    """List the newest workflows of all kinds that running workers define."""
    found = await context.app.workflows.list(kind=kind, state=state or None, limit=limit)
    if context.as_json:
        output.print_json({"workflows": [job.to_json() for job in found]})
        return
    if not found:
        output.note("no matching workflows")
        return
    waiting = [job.id for job in found if job.state == State.WAITING]
    waits = await context.app.workflows.waits(*waiting) if waiting else {}
    output.show_table(LIST, [_row(job, waits.get(job.id, [])) for job in found])


def _row(job: JobStatus, steps: list[StepStatus]) -> tuple[object, ...]:
    waits = ", ".join(wait_words(step, job) for step in steps) or None
    if SystemData.of(job.system).held:
        waits = "held: a person must decide"
    return job.id, job.state.value, job.kind, waits, output.ago(job.finished_at or job.started_at or job.enqueued_at)


@click.command()
@with_context
@click.argument("job_id", metavar="ID")
@click.option("--mermaid", is_flag=True, help="Print a Mermaid diagram of its steps.")
@options.svg
async def show(context: CommandContext, job_id: str, mermaid: bool, svg: TextIO | None) -> None:
    """Show a workflow with its steps and what it waits for."""
    job = await context.find(job_id)
    status = await context.app.workflows.get(job.id)
    if svg is not None:
        svg.write(workflow_svg(status))
    elif mermaid:
        click.echo(to_mermaid(status), nl=False)
    elif context.as_json:
        output.print_json(status.to_json())
    else:
        output.show_pairs([*_facts(status)])
        if status.steps:
            click.echo()
            output.show_table(STEPS, [_step(step) for step in status.steps])


def _facts(status: WorkflowStatus) -> Iterator[tuple[str, object]]:
    job = status.job
    yield "id", job.id
    yield "workflow", job.kind
    yield (
        "state",
        job.state.value + (f" (rolling back, {output.counted(len(status.to_undo), 'undo')} left)" if status.rolls_back else ""),
    )
    yield "status", None if status.status is None else value(status.status)
    yield "held", status.held
    yield "version", (job.capability or "").partition("@")[2] or None
    yield "forked from", SystemData.of(job.system).forked
    yield "enqueued", output.moment(job.enqueued_at)
    yield "continues", output.moment(job.run_at) if job.state == State.WAITING else None
    yield "finished", output.moment(job.finished_at)
    yield "input", value(job.input)
    yield "output", None if job.output is None else value(job.output)
    yield "error", gist(job.error) if job.error and status.held is None else None


def _step(step: StepStatus) -> tuple[object, ...]:
    took = step.ended_at - step.started_at if step.ended_at is not None and step.started_at is not None else None
    when = step.due_at if step.state in ("open", "retry") and step.due_at is not None else step.ended_at or step.started_at
    return (
        _indented(step.name), step.what, "registered" if step.what == "on_rollback" else step.state, step.attempts,
        span(took) if took else None, output.ago(when), result_words(step),
    )  # fmt: skip


def _indented(name: str) -> str:
    """Steps of tasks that the workflow started are shown below it."""
    *tasks, last = name.split("/")
    return "  " * len(tasks) + last if all(task.isdigit() for task in tasks) else name


_SHAPES = {"sleep": ("([", "])"), "wait": ("{{", "}}"), "event": ("{{", "}}"), "call": ("[[", "]]"), "start": ("[[", "]]")}


def to_mermaid(status: WorkflowStatus) -> str:
    """The steps in their order, as a flow chart."""
    lines = ["flowchart TD", f'    start(["{_label(status.job.kind)}"])']
    before = "start"
    for number, step in enumerate(status.steps, 1):
        opening, closing = _SHAPES.get(step.what, ("[", "]"))
        lines.append(f'    s{number}{opening}"{_label(step.name)}<br/>{step.what}, {step.state}"{closing}')
        lines.append(f"    {before} --> s{number}")
        before = f"s{number}"
    lines.append(f'    {before} --> finish(["{status.job.state.value}"])')
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    return inline(text, LONGEST_RESULT).replace('"', "'").replace("<", "&lt;").replace(">", "&gt;")
