"""Standard logging, as text or as JSON lines: a record of any logger names the job that it belongs to.

`tenure worker` sets up such logging by itself. This is for a worker in your own process, and for a format of your own.
"""

import asyncio
import io
import json
import logging
from contextvars import ContextVar
from pathlib import Path

from tenure import CallNext, Context, Retry, Tenure
from tenure.embedded import EmbeddedServer

app = Tenure()
log = logging.getLogger("shop")
job_id: ContextVar[str] = ContextVar("job_id", default="-")


@app.middleware
async def remember_job(ctx: Context, call_next: CallNext) -> object:
    job_id.set(str(ctx.job_id))  # seen by the handler, in its coroutine or thread
    return await call_next()


class AddJob(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "job_id"):  # Tenure's own records may have it
            record.job_id = job_id.get()
        return True


class JsonLines(logging.Formatter):
    """One object per line, with what was given as `extra`, and the traceback."""

    known = frozenset(vars(logging.makeLogRecord({}))) | {"taskName"}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {"at": self.formatTime(record), "level": record.levelname, "logger": record.name}
        line |= {"message": record.getMessage()}
        line |= {name: value for name, value in vars(record).items() if name not in self.known}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up_logging(text: io.TextIOBase, lines: io.TextIOBase) -> None:
    """To two streams, to show both formats. A service has one of them."""
    for_text, for_json = logging.StreamHandler(text), logging.StreamHandler(lines)
    for_text.setFormatter(logging.Formatter("%(levelname)-7s %(name)s job=%(job_id)s %(message)s"))
    for_json.setFormatter(JsonLines())
    for handler in (for_text, for_json):
        handler.addFilter(AddJob())
    logging.basicConfig(level=logging.INFO, handlers=[for_text, for_json])


@app.job(retry=Retry(initial="100ms"))
def send_mail(ctx: Context, to: str) -> None:
    log.info("connecting to the mail server")  # any logger
    if ctx.attempt == 1:
        raise ConnectionError("the mail server did not answer")  # Tenure logs a warning, with the traceback
    ctx.log.info("sent", to=to)  # the logger "tenure.job"; the line is also kept in the job's report


async def main() -> None:
    text, lines = io.StringIO(), io.StringIO()  # kept here to be checked below; a service logs to sys.stderr
    set_up_logging(text, lines)
    await app.migrate()
    async with app.running():
        handle = await send_mail.enqueue("ada@example.org")
        await handle.result(timeout="30s")
        report = await handle.report()

    print(text.getvalue(), lines.getvalue(), sep="\n")
    assert text.getvalue().count(f"INFO    shop job={handle.id} connecting") == 2
    assert f"WARNING tenure job={handle.id}" in text.getvalue()
    [failure] = [record for line in lines.getvalue().splitlines() if "traceback" in (record := json.loads(line))]
    assert (failure["level"], failure["job_id"], failure["attempt"]) == ("WARNING", str(handle.id), 1)
    assert "ConnectionError: the mail server did not answer" in failure["traceback"]
    assert [(line.message, line.fields) for line in report.log] == [("sent", {"to": "ada@example.org"})]


if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
