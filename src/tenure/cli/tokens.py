"""`tenure tokens create`, `list` and `revoke`."""

from __future__ import annotations

import click

from tenure.cli import exit_codes, options, output
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.output import Column
from tenure.cli.web_extra import needs_web_extra

SCOPES = ["read", "operate", "admin"]

LIST = (
    Column("NAME", flexible=True),
    Column("SCOPE"),
    Column("LIMITED TO", flexible=True),
    Column("CREATED", right=True),
    Column("EXPIRES", right=True),
    Column("LAST USED", right=True),
    Column("STATE"),
    Column("ID", optional=True),
)


@click.group()
def tokens() -> None:
    """Create, list and revoke tokens of the web API."""


@tokens.command()
@with_context
@click.argument("name")
@click.option("--scope", type=click.Choice(SCOPES), default="read", show_default=True, help="What it may do.")
@click.option("--queue", "queues", multiple=True, help="Only jobs of this queue; repeatable.")
@click.option("--kind", "kinds", multiple=True, help="Only jobs of this kind; repeatable.")
@click.option("--rate", type=click.FloatRange(0), help="Requests per second; default 100, 0 for no limit.")
@click.option("--expires-in", help="How long it is valid, such as 90d; default: until it is revoked.")
@options.by
async def create(  # noqa: PLR0917 - click passes them by name
    context: CommandContext,
    name: str,
    scope: str,
    queues: tuple[str, ...],
    kinds: tuple[str, ...],
    rate: float | None,
    expires_in: str | None,
    by: str,
) -> None:
    """Create a token and print it. It is shown only once."""
    with needs_web_extra():
        from tenure.web.token_admin import create_token  # noqa: PLC0415 - slow to import

    made = await create_token(
        context.app,
        name,
        scope,
        queues=queues or None,
        kinds=kinds or None,
        rate=rate,
        expires_in=expires_in,
        by=by,
        source="cli",
    )
    if context.as_json:
        output.print_json({"id": str(made.id), "name": name, "scope": scope, "token": made.token})
        return
    output.note("This token is shown only once. Running servers accept it now:")
    click.echo(made.token)


@tokens.command("list")
@with_context
@click.option("--all", "everything", is_flag=True, help="Revoked and expired ones as well.")
async def list_(context: CommandContext, everything: bool) -> None:
    """List tokens, never the tokens themselves: only their hashes are stored."""
    with needs_web_extra():
        from tenure.web.token_admin import list_tokens  # noqa: PLC0415 - slow to import

    found = await list_tokens(context.app, revoked=everything)
    if context.as_json:
        output.print_json({"tokens": [row._asdict() for row in found]})
        return
    if not found:
        output.note("no tokens; `tenure tokens create NAME` creates one")
        return
    output.show_table(
        LIST,
        [
            (
                row.name,
                row.scope,
                _limits(row.queues, row.kinds),
                output.ago(row.created_at),
                output.ago(row.expires_at),
                output.ago(row.last_used_at),
                "active" if row.active else "revoked" if row.revoked_at else "expired",
                row.id,
            )
            for row in found
        ],
    )


def _limits(queues: list[str] | None, kinds: list[str] | None) -> str:
    return ", ".join([*(f"queue {name}" for name in queues or ()), *(f"kind {name}" for name in kinds or ())]) or "-"


@tokens.command()
@with_context
@click.argument("which", metavar="NAME_OR_ID")
@options.by
async def revoke(context: CommandContext, which: str, by: str) -> int:
    """Revoke a token. Its sessions and live connections end within 30 s."""
    with needs_web_extra():
        from tenure.web.token_admin import revoke_token  # noqa: PLC0415 - slow to import

    ended = await revoke_token(context.app, which, by=by, source="cli")
    if context.as_json:
        output.print_json({"revoked": [str(token_id) for token_id in ended]})
    elif ended:
        click.echo(f"{output.counted(len(ended), 'token')} revoked")
    else:
        output.note(f"no token in force has the name or id {which!r}; `tenure tokens list` shows them")
    return exit_codes.SUCCESS if ended else exit_codes.FAILED
