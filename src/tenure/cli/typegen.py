"""`tenure typegen`: TypeScript types and trackers for the kinds of jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenure.cli import exit_codes, options, output

if TYPE_CHECKING:
    from tenure.model.published_kind import PublishedKind


@click.command()
@options.app
@options.database
@click.option(
    "--output",
    "-o",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the module; default: stdout.",
)
@click.option("--import", "module", default="tenure-tracker", show_default=True, help="What to import the tracker from.")
@click.option("--kind", "only", multiple=True, help="Only this kind; repeatable.")
@click.option("--check", is_flag=True, help="Write nothing; fail if the file is out of date. For CI.")
def typegen(  # noqa: PLR0917 - click passes them by name
    app: str | None, dsn: str | None, schema: str | None, file: Path | None, module: str, only: tuple[str, ...], check: bool
) -> int:
    """Write TypeScript types of all kinds, and a function that creates a tracker for each.

    With --app from the code, without a database; otherwise from what workers have published in the database.
    """
    from tenure.cli.typescript import module_of  # noqa: PLC0415 - slow to import

    if check and file is None:
        raise click.UsageError("--check compares with a file: give --output")
    kinds = _chosen(_of_code(app) if app is not None else _published(dsn, schema), only)
    text = module_of(kinds, module)
    if file is None:
        click.echo(text, nl=False)
        return exit_codes.SUCCESS
    same = file.exists() and file.read_text("utf-8") == text
    if check:
        output.note(f"{file} is up to date" if same else f"{file} is out of date: run `tenure typegen` without --check")
        return exit_codes.SUCCESS if same else exit_codes.FAILED
    if not same:  # tools that watch the file are not woken for nothing
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    output.note(f"{file}: {output.counted(len(kinds), 'kind')}")
    return exit_codes.SUCCESS


def _of_code(app: str) -> list[PublishedKind]:
    from tenure.cli.command_context import load_user_app  # noqa: PLC0415 - slow to import
    from tenure.model.published_kind import PublishedKind  # noqa: PLC0415

    return [PublishedKind.of(kind) for kind in load_user_app(app).kinds.values()]


def _published(dsn: str | None, schema: str | None) -> list[PublishedKind]:
    from tenure.cli.command_context import open_app, run_async  # noqa: PLC0415 - slow to import
    from tenure.model.published_kind import PublishedKind  # noqa: PLC0415
    from tenure.store import kinds  # noqa: PLC0415

    found: list[PublishedKind] = []

    async def read() -> None:
        app = open_app(None, dsn, schema)
        for row in await app._runtime.session().fetch_all(kinds.find_all()):  # noqa: SLF001 - the connections of the app
            found.append(PublishedKind.from_json({**json.loads(row.definition), "name": row.name}))  # noqa: PERF401

    run_async(read())
    return found


def _chosen(kinds: list[PublishedKind], only: tuple[str, ...]) -> list[PublishedKind]:
    names = {kind.name for kind in kinds}
    if missing := [name for name in only if name not in names]:
        raise click.UsageError(f"unknown kind {missing[0]!r}; the kinds are {', '.join(sorted(names)) or 'none'}")
    if not kinds:
        raise click.ClickException("there are no kinds: start a worker, which publishes them, or give --app")
    return [kind for kind in kinds if not only or kind.name in only]
