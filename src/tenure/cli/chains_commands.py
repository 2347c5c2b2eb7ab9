"""`tenure chains list`, `show`, `complete` and `delete`."""

from __future__ import annotations

from typing import Any, TextIO, Unpack

import click

from tenure.cli import exit_codes, options, output, paging, param_types
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.filters import filters
from tenure.cli.output import Column
from tenure.client.filters import FilterWords
from tenure.flow.chain_status import ChainSummary
from tenure.flow.drawing import mermaid, tree
from tenure.flow.svg import chain_svg
from tenure.model.errors import NotPossible

LIST = (
    Column("ID"),
    Column("STATE"),
    Column("LINKS", right=True),
    Column("KIND", flexible=True),
    Column("LAST KIND", flexible=True, optional=True),
    Column("WHEN", right=True),
)


@click.command("list")
@with_context
@filters()
@paging.limit_option
@paging.after_option
async def list_(context: CommandContext, limit: int, after: str | None, **given: Unpack[FilterWords]) -> None:
    """List the newest chains. The filters apply to the first job of a chain, except the state, which is that of the chain."""

    async def read(size: int, position: str | None) -> tuple[list[ChainSummary], str | None]:
        words: FilterWords = {**given}
        page = await context.app.chains.list(limit=size, after=position, **words)
        return page.chains, page.next

    chains, next_ = await paging.gather(read, limit, after)
    if context.as_json:
        output.print_json({"chains": [chain.to_json() for chain in chains], "next": next_})
        return
    if chains:
        output.show_table(LIST, [_row(chain) for chain in chains])
    paging.note_more(chains, next_, "no matching chains")


def _row(chain: ChainSummary) -> tuple[object, ...]:
    return (
        chain.id,
        chain.state.value,
        chain.links,
        chain.kind,
        chain.last_kind,
        output.ago(chain.finished_at or chain.enqueued_at),
    )


@click.command()
@with_context
@click.argument("chain_id", metavar="ID")
@click.option("--mermaid", "as_graph", is_flag=True, help="Print a flow chart in the language of Mermaid.")
@options.svg
async def show(context: CommandContext, chain_id: str, as_graph: bool, svg: TextIO | None) -> None:
    """Show a chain as a tree: its links, their states and times, and what they wait for."""
    chain = await context.app.chains.get((await context.find(chain_id)).id)
    if svg is not None:
        svg.write(chain_svg(chain))
    elif context.as_json:
        output.print_json(chain.to_json())
    else:
        click.echo(mermaid(chain) if as_graph else tree(chain), nl=False)


@click.command()
@with_context
@click.argument("chain_id", metavar="ID")
@click.option("--output", "result", type=param_types.JSON, default=None, help="Its output, as JSON; `-` reads stdin.")
@options.by
async def complete(context: CommandContext, chain_id: str, result: Any, by: str) -> int:
    """Complete a chain without a worker: its live job ends with this output. If it is running, it is aborted."""
    job = await context.find(chain_id)
    try:
        link = await context.app.chains.complete(job.id, result, by=by)
    except NotPossible as error:
        raise click.ClickException(str(error)) from None
    if context.as_json:
        output.print_json({"completed": link})
    else:
        click.echo(f"completed chain {job.chain_id}" + (f" with job {link}" if link != job.chain_id else ""))
    return exit_codes.SUCCESS


@click.command()
@with_context
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--cascade", is_flag=True, help="Also delete the chains of jobs that wait for them.")
async def delete(context: CommandContext, ids: tuple[str, ...], cascade: bool) -> int:
    """Delete chains with all their jobs and everything stored with them; running jobs are aborted. This cannot be undone."""
    wanted = await context.find_all(ids)
    try:
        done = await context.app.chains.delete(*[job.id for job in wanted], cascade=cascade)
    except NotPossible as error:
        raise click.ClickException(str(error).replace("cascade=True", "--cascade")) from None
    if context.as_json:
        output.print_json({"deleted": done})
    else:
        click.echo(f"deleted {output.counted(done, 'chain')}")
    return exit_codes.SUCCESS
