"""`tenure demo`: shows the promises on a real PostgreSQL with real processes and a real kill -9."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import click
from rich.markup import escape

from tenure.cli import demo_summary, exit_codes
from tenure.cli.demo_steps import DemoRun, run_steps
from tenure.cli.live_display import Display, open_display
from tenure.cli.temporary_server import temporary_folder, temporary_server
from tenure.cli.web_process import WebProcess, start_web, web_options
from tenure.cli.worker_process import worker_process
from tenure.embedded.finding import note_home
from tenure.settings import Settings
from tenure.simulate.demo import app
from tenure.store.migrator import migrate

APP = "tenure.simulate.demo:app"
PROCESSES = 2
CONCURRENCY = 10


@click.command()
@click.option("--keep", is_flag=True, help="Keep everything running at the end, until Ctrl-C.")
@web_options
def demo(keep: bool, web_port: int | None, no_web: bool) -> int:
    """Watch Tenure at work: starts a PostgreSQL, workers, a web server and jobs, and kills a worker process.

    Takes half a minute. Everything is in a temporary directory, which is removed at the end. A database that you have set is
    not used.
    """
    signal.signal(signal.SIGTERM, _exit_on_signal)
    signal.signal(signal.SIGHUP, _exit_on_signal)
    with (
        open_display() as display,
        temporary_folder("tenure-demo-") as folder,
        _server(display, folder) as settings,
        _registered_here(folder / "server") if keep else nullcontext(False) as found,
    ):
        app.configure(dsn=settings.dsn)
        with worker_process(settings, APP, folder / "worker.log", processes=PROCESSES, concurrency=CONCURRENCY) as workers:
            port = 0 if no_web else settings.web_listen if web_port is None else web_port
            with _web_server(display, settings, folder, port) as url:
                run = DemoRun(display, workers, app.client())
                good = asyncio.run(_run(run, keep=keep))
                if keep:
                    _keep_running(run, settings, url, found=found)
    return exit_codes.SUCCESS if good else exit_codes.FAILED


def _exit_on_signal(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)  # an exception, so that everything is cleaned up


@contextmanager
def _server(display: Display, folder: Path) -> Iterator[Settings]:
    display.event("the background jobs of a small shop, for half a minute")
    with temporary_server(folder) as settings:
        asyncio.run(migrate(settings.database))
        display.event("started a PostgreSQL in a temporary directory")
        yield settings


async def _run(run: DemoRun, *, keep: bool) -> bool:
    display = run.display
    await run.until(lambda: _all_started(run), "the workers did not start")
    pids = " and ".join(str(worker.pid) for worker in await run.client.workers())
    display.event(f"started a supervisor with {PROCESSES} worker processes: {pids}")
    await run_steps(run)
    found = await demo_summary.problems(run)
    if found:
        display.print_lines(["", f"[red]Not as expected[/]: {len(found)} problems", *demo_summary.first_problems(found)])
        display.print_lines(escape(run.workers.log_tail).splitlines())
        return False
    await _summarize(run, keep=keep)
    await app.close()
    return True


async def _all_started(run: DemoRun) -> bool:
    run.workers.check()
    return len(await run.client.workers()) >= PROCESSES


async def _summarize(run: DemoRun, *, keep: bool) -> None:
    print_lines = run.display.print_lines
    report = await demo_summary.crashed_job_report(run)
    if report is not None:
        print_lines(["", "Report of a job that was running when its process was killed:", "", *demo_summary.report_lines(report)])
    print_lines(["", "[green]No job was lost.[/] Every job ended as expected.", ""])
    print_lines(demo_summary.summary_lines(await demo_summary.numbers(run), run.processes))
    print_lines(["", "Next steps:", "", *demo_summary.next_steps(kept=keep), ""])


@contextmanager
def _registered_here(home: Path) -> Iterator[bool]:
    """Yields whether commands in this directory and below find the server automatically."""
    try:
        note = note_home(Path.cwd(), home)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        note.unlink(missing_ok=True)


@contextmanager
def _web_server(display: Display, settings: Settings, folder: Path, port: int) -> Iterator[str | None]:
    """Yields its address, if it could be started."""
    web = start_web(settings, APP, str(Path.cwd()), port, folder / "web.log") if port else None
    if not isinstance(web, WebProcess):
        if web is not None:
            display.event(escape(f"no web server: {web}"))
        yield None
        return
    display.event(f"started a web server: {web.url} (dashboard; API below /_api)")
    try:
        yield web.url
    finally:
        web.stop()


def _keep_running(run: DemoRun, settings: Settings, url: str | None, *, found: bool) -> None:
    me = demo_summary.program()
    pill = next(handle.id for handle in run.handles if handle.kind == "open_upload")
    export = [] if found else [f"  export TENURE_DSN='{escape(settings.dsn or '')}'"]
    run.display.print_lines(
        [
            "Everything keeps running until Ctrl-C. In another terminal" + (", in this directory:" if found else ":"),
            "",
            *export,
            f"  {me} jobs list",
            f"  {me} jobs report {pill}",
            f"  {me} explain {pill}",
            *([] if url is None else [f"  curl {url}/_api/jobs/{pill}"]),
            "",
        ]
    )
    with suppress(KeyboardInterrupt):
        signal.pause()
