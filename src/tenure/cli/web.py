"""`tenure web`: the dashboard, the REST API and live updates."""

from __future__ import annotations

from typing import Any

import click

from tenure.cli import options, output
from tenure.cli.web_extra import needs_web_extra


@click.command()
@options.as_json
@options.app
@options.database
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Any address other than loopback requires a token.",
)
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535))
@click.option("--fd", type=int, hidden=True, help="A socket that listens, from the process that starts this one.")
@click.option("--allowed-host", "allowed_hosts", multiple=True, help="A name in the Host header to accept; repeatable.")
@click.option("--allowed-origin", "allowed_origins", multiple=True, help="A site whose pages may use the API; repeatable.")
@click.option("--trusted-proxy", "trusted_proxies", multiple=True, help="A proxy whose X-Forwarded-* headers to believe.")
@click.option("--secret-name", "secret_names", multiple=True, help="Another name whose values are hidden; repeatable.")
@click.option("--read-only", is_flag=True, help="Refuse everything that changes something.")
def web(app: str | None, dsn: str | None, schema: str | None, as_json: bool, **given: Any) -> None:
    """Serve the dashboard, the REST API, live updates and metrics.

    Until the first token is created, every request from this machine is allowed, and other addresses than loopback are refused:
    create one with `tenure tokens create`. With --app, arguments are checked by the code of your handlers; without it, by what
    workers have published.
    """
    with needs_web_extra():
        from tenure.web.server import WebServerOptions, serve  # noqa: PLC0415 - slow to import
    from tenure.cli.command_context import open_app  # noqa: PLC0415
    from tenure.cli.worker import configure_logging  # noqa: PLC0415
    from tenure.manager.loops import run_loop  # noqa: PLC0415
    from tenure.model.errors import ConfigError  # noqa: PLC0415

    def ready(url: str) -> None:
        if given["fd"] is not None:
            return  # the process that started this one has reported it
        if as_json:
            output.print_json({"url": url})
        else:
            output.note(f"dashboard at {url} (API below /_api)")

    configure_logging()
    opened = open_app(app, dsn, schema)
    try:
        run_loop(serve(opened, WebServerOptions(**given), ready))
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
