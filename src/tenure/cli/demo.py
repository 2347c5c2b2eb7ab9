"""`tenure demo`: the promises, acted out on a real PostgreSQL with real processes and a real kill -9."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import click
from rich.markup import escape

from tenure.cli import codes
from tenure.cli import demo_closing as closing
from tenure.cli.crew import crew
from tenure.cli.demo_show import Show, play
from tenure.cli.stage import Stage, open_stage
from tenure.embedded import EmbeddedServer
from tenure.embedded.finding import note_home
from tenure.settings import Settings
from tenure.simulate.demo import app
from tenure.store.migrator import migrate

PROCESSES = 2
CONCURRENCY = 10
FOREIGN = ("TENURE_", "PG", "DATABASE_URL")


@click.command()
@click.option("--keep", is_flag=True, help="Stay up at the end, for you to look around, until Ctrl-C.")
def demo(keep: bool) -> int:
    """See it at work: starts a PostgreSQL, workers and jobs, and kills one of them.

    Takes half a minute. All of it lives in a folder of its own, which is removed at the end; whatever database you have
    set is left alone.
    """
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, _leave)
    with (
        open_stage() as stage,
        _folder() as folder,
        _server(stage, folder) as settings,
        _found_from_here(folder / "server") if keep else nullcontext(False) as found,
    ):
        app.configure(dsn=settings.dsn)
        with crew(
            settings, "tenure.simulate.demo:app", folder / "worker.log", processes=PROCESSES, concurrency=CONCURRENCY
        ) as hired:
            show = Show(stage, hired, app.client())
            good = asyncio.run(_play(show, keep=keep))
            if keep:
                _stay(show, settings, found=found)
    return codes.FINE if good else codes.FAILED


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)  # through all that is to be cleaned up


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="tenure-demo-")).resolve()
    if os.geteuid() == 0:
        folder.chmod(0o711)  # as root, the server runs under another account, which must be able to pass
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """The guardian of the server may need a moment to let go of it."""
    data = (folder / "server" / "pg").resolve()
    if not data.is_relative_to(folder):
        shutil.rmtree(data.parent, ignore_errors=True)
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


@contextmanager
def _server(stage: Stage, folder: Path) -> Iterator[Settings]:
    _forget_foreign_settings()
    stage.say("a small shop's background work, in half a minute")
    with EmbeddedServer(folder / "server") as server:
        os.environ["TENURE_DSN"] = os.environ["TENURE_LISTEN_DSN"] = server.dsn
        os.environ["TENURE_SCHEMA"] = "tenure"
        settings = Settings.load()
        asyncio.run(migrate(settings.database))
        stage.say("a PostgreSQL of our own is up, in a folder that goes away at the end")
        yield settings


def _forget_foreign_settings() -> None:
    """The demo has a database of its own, whatever is set here."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) and name != "TENURE_PG_BIN":
            del os.environ[name]


async def _play(show: Show, *, keep: bool) -> bool:
    stage = show.stage
    await show.until(lambda: _all_here(show), "the workers did not start")
    pids = " and ".join(str(worker.pid) for worker in await show.client.workers())
    stage.say(f"a supervisor with {PROCESSES} worker processes is up: {pids}")
    await play(show)
    found = await closing.faults(show)
    if found:
        stage.quote(["", f"[red]That is not what should have come of it[/]: {len(found)} faults", *closing.first_faults(found)])
        stage.quote(escape(show.crew.last_words).splitlines())
        return False
    await _close(show, keep=keep)
    await app.close()
    return True


async def _all_here(show: Show) -> bool:
    show.crew.check()
    return len(await show.client.workers()) >= PROCESSES


async def _close(show: Show, *, keep: bool) -> None:
    quote = show.stage.quote
    report = await closing.interesting(show)
    if report is not None:
        quote(["", "The life of one of the jobs that were running when their process was killed:", "", *closing.told(report)])
    quote(["", "[green]Nothing was lost.[/] Every job ended exactly as it should.", ""])
    quote(closing.summary(await closing.numbers(show), show.processes))
    quote(["", "Where to go next:", "", *closing.next_steps(kept=keep), ""])


@contextmanager
def _found_from_here(home: Path) -> Iterator[bool]:
    """Whether commands in this folder, and below it, find the server by themselves."""
    try:
        note = note_home(Path.cwd(), home)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        note.unlink(missing_ok=True)


def _stay(show: Show, settings: Settings, *, found: bool) -> None:
    me = closing.program()
    pill = next(handle.id for handle in show.handles if handle.kind == "open_upload")
    export = [] if found else [f"  export TENURE_DSN='{escape(settings.dsn or '')}'"]
    show.stage.quote(
        [
            "All of it stays up until Ctrl-C. In another terminal" + (", in this folder:" if found else ":"),
            "",
            *export,
            f"  {me} jobs list",
            f"  {me} jobs report {pill}",
            f"  {me} explain {pill}",
            "",
        ]
    )
    with suppress(KeyboardInterrupt):
        signal.pause()
