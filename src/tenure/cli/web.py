"""`tenure web`: the REST API and live updates."""

from __future__ import annotations

import click

from tenure.cli import output
from tenure.cli.command_context import CommandContext, with_context
from tenure.cli.web_extra import needs_web_extra


@click.command()
@with_context
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; others need a token.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535))
@click.option("--allowed-host", "allowed_hosts", multiple=True, help="A name in the Host header to accept; repeatable.")
@click.option("--allowed-origin", "allowed_origins", multiple=True, help="A site whose pages may use the API; repeatable.")
@click.option("--trusted-proxy", "trusted_proxies", multiple=True, help="A proxy whose X-Forwarded-* headers to believe.")
@click.option("--read-only", is_flag=True, help="Refuse everything that changes something.")
async def web(  # noqa: PLR0917 - click passes them by name
    context: CommandContext,
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    allowed_origins: tuple[str, ...],
    trusted_proxies: tuple[str, ...],
    read_only: bool,
) -> None:
    """Serve the REST API, live updates and metrics.

    While no token exists, every request from this machine is allowed, and other addresses than loopback are refused: create a
    token with `tenure tokens create`. With --app, arguments are checked by the code of your handlers; without it, by what
    workers have published.
    """
    with needs_web_extra():
        from tenure.web.server import ServerOptions, serve  # noqa: PLC0415 - slow to import

    def ready(url: str) -> None:
        if context.as_json:
            output.print_json({"url": url})
        else:
            output.note(f"listening on {url}/_api")

    options = ServerOptions(
        host=host,
        port=port,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        trusted_proxies=trusted_proxies,
        read_only=read_only,
    )
    await serve(context.app, options, ready)
