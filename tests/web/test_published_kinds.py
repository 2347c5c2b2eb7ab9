"""What workers publish about their kinds, and what other processes make of it."""

from __future__ import annotations

import json

from tenure import Context, Retry, Tenure
from tenure.model.published_kind import LARGEST_SCHEMA, PublishedKind
from tests.processes import worker_process
from tests.waiting import until

APP = """
from tenure import Tenure
app = Tenure()

@app.job(queue="mail", priority="high", capability="smtp", max_attempts=7)
async def send_email(to: str, copies: int = 1) -> bool:
    "Sends an e-mail."
    return True
"""


async def test_a_worker_process_publishes_its_kinds(dsn, tmp_path, sql):
    (tmp_path / "jobs.py").write_text(APP)
    with worker_process(tmp_path, dsn):
        await until(lambda: sql("select name, app from tenure.kinds"), is_=[("send_email", "jobs:app")], within=60)
    [(definition,)] = sql("select definition from tenure.kinds")
    kind = PublishedKind.from_json(definition)
    assert (kind.queue, kind.priority, kind.capability, kind.max_attempts) == ("mail", 75, "smtp", 7)
    assert (kind.description, kind.input["required"], kind.output) == ("Sends an e-mail.", ["to"], {"type": "boolean"})


async def test_another_version_of_the_code_replaces_what_was_published(dsn, sql):
    for default in (1, 2):
        app = Tenure(dsn, name="shop")

        @app.job(max_attempts=default)
        async def work(n: int) -> None: ...

        async with app.running():
            assert sql("select (definition -> 'max_attempts')::int from tenure.kinds") == [(default,)]
        await app.close()


async def test_unchanged_kinds_are_not_written_again(dsn, sql):
    written = []
    for _ in range(2):
        app = Tenure(dsn, name="shop")

        @app.job
        async def work(n: int) -> None: ...

        async with app.running():
            written += sql("select xmin::text from tenure.kinds")
        await app.close()
    assert written[0] == written[1]


def published(app: Tenure, name: str) -> PublishedKind:
    return PublishedKind.of(app.kinds[name])


def test_a_kind_without_a_schema_is_published_without_one():
    app = Tenure("postgresql://nowhere")

    class Odd:
        pass

    @app.job
    async def odd(ctx: Context, given: Odd) -> Odd: ...

    @app.job
    async def plain() -> None: ...

    assert (published(app, "odd").input, published(app, "odd").output) == (None, None)
    assert published(app, "plain").output == {"type": "null"}


def test_a_schema_that_is_too_large_is_left_out():
    from typing import Literal

    from pydantic import create_model

    wide = create_model("Wide", **{f"field_{n}": (Literal["x" * 60], ...) for n in range(LARGEST_SCHEMA // 100)})
    app = Tenure("postgresql://nowhere")

    async def work(given: wide) -> None: ...

    work.__annotations__ = {"given": wide, "return": None}
    app.job(work)
    assert published(app, "work").input is None


def test_fields_of_later_versions_are_ignored():
    app = Tenure("postgresql://nowhere")

    @app.job(retry=Retry(max_attempts=9), key=True, key_for="24h")
    async def work(n: int) -> None: ...

    written = published(app, "work").to_json()
    assert PublishedKind.from_json(json.loads(json.dumps({**written, "color": "red"}))) == published(app, "work")
    assert (written["makes_key"], written["key_for"], written["max_attempts"]) == (True, 86400.0, 9)
