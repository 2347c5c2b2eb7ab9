"""structlog: one JSON object per line, for your own log lines and for Tenure's, with the job that each belongs to.

Needs `pip install structlog`.
"""

import asyncio
import io
import json
import logging
from pathlib import Path

import structlog

from tenure import CallNext, Context, Tenure
from tenure.embedded import EmbeddedServer

app = Tenure()
log: structlog.stdlib.BoundLogger = structlog.get_logger("shop")


@app.middleware
async def bind_job(ctx: Context, call_next: CallNext) -> object:
    with structlog.contextvars.bound_contextvars(job_id=str(ctx.job_id), kind=ctx.kind, attempt=ctx.attempt):
        return await call_next()


def set_up_logging(stream: io.TextIOBase) -> None:
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),  # the fields of Tenure's records
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
    ]
    formatting = structlog.stdlib.ProcessorFormatter
    structlog.configure(
        processors=[*shared, formatting.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(stream)
    render: list[structlog.typing.Processor] = [formatting.remove_processors_meta, structlog.processors.JSONRenderer()]
    handler.setFormatter(formatting(foreign_pre_chain=shared, processors=render))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


@app.job
async def send_mail(ctx: Context, to: str) -> None:
    log.info("connecting", server="mail.example.org")
    ctx.log.info("sent", to=to)  # logged as well, and kept in the job's report


async def main() -> None:
    lines = io.StringIO()  # kept here to be checked below; a service logs to sys.stderr
    set_up_logging(lines)
    await app.migrate()
    async with app.running():
        handle = await send_mail.enqueue("ada@example.org")
        await handle.result(timeout="30s")

    print(lines.getvalue())
    logged = [json.loads(line) for line in lines.getvalue().splitlines()]
    of_job = [line for line in logged if line.get("job_id") == str(handle.id)]
    assert [(line["logger"], line["event"]) for line in of_job] == [("shop", "connecting"), ("tenure.job", "sent")]
    assert of_job[1]["fields"] == {"to": "ada@example.org"}


if __name__ == "__main__":
    if app.settings.dsn is None:  # TENURE_DSN is not set, and `tenure dev` does not run here
        app.configure(dsn=EmbeddedServer(Path(".tenure")).start().dsn)  # a PostgreSQL that stops with this program
    asyncio.run(main())
