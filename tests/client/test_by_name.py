"""Enqueueing by the name of a kind: checked where the app defines it, as given where it does not."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import pytest
from pydantic import BaseModel

from tenure import ConfigError, Fail, Handle, InvalidInput, InvalidPayload, JobEnqueued, Retry, Tenure
from tests.worker.serving import serving


class Message(BaseModel):
    to: str
    copies: int = 1


@dataclass
class Wrapped:
    message: str


@pytest.fixture
async def app(app):
    yield app
    await app.close()
    app.close_sync()


async def test_a_kind_that_the_app_defines_is_enqueued_as_its_definition_says(app, database):
    @app.job(queue="mail", priority="high", capability="smtp", retry=Retry(5), key="to")
    async def send(to: str, at: datetime | None = None, copies: int = 1) -> None: ...

    handle = await app.enqueue("send", {"to": "ann", "at": "2030-01-01T00:00:00Z"}, delay="1h", meta={"a": 1})
    assert isinstance(handle, Handle)
    [row] = database.sql("select queue, priority, capability, max_attempts, key, state, input, meta from tenure.jobs")
    told = {"to": "ann", "at": "2030-01-01T00:00:00Z"}
    assert row == ("mail", 75, "smtp", 5, "ann", "scheduled", told, {"a": 1})
    assert (await app.enqueue("send", {"to": "ann"})).id == handle.id
    assert app.enqueue_sync("send", {"to": "ann"}).id == handle.id


async def test_arguments_that_do_not_fit_a_known_kind_are_refused(app, database):
    @app.job
    async def send(to: str, copies: int = 1) -> None: ...

    for wrong in ({"to": 5}, {}, None, {"to": "ann", "copys": 2}):
        with pytest.raises(InvalidInput):
            await app.enqueue("send", wrong)
    with pytest.raises(InvalidInput, match="give the arguments by name"):
        await app.enqueue("send", ["ann"])
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


async def test_typed_values_are_taken_as_well(app, database):
    @app.job
    async def charge(amount: Decimal, at: datetime) -> None: ...

    await app.enqueue("charge", {"amount": Decimal("1.50"), "at": datetime(2030, 1, 1, tzinfo=UTC)})
    assert database.sql("select input from tenure.jobs") == [({"amount": "1.50", "at": "2030-01-01T00:00:00Z"},)]


async def test_a_kind_that_the_app_does_not_define_is_enqueued_as_given(dsn, database):
    app = Tenure(dsn, retry=Retry(4))
    told = []
    app.on(JobEnqueued)(told.append)
    handle = await app.enqueue("elsewhere", {"n": 1}, queue="far", key="k")
    assert (await app.enqueue("elsewhere", {"n": 2}, queue="far", key="k")).id == handle.id
    assert app.enqueue_sync("elsewhere").kind == "elsewhere"
    assert database.sql("select kind, queue, input, max_attempts, key from tenure.jobs order by id") == [
        ("elsewhere", "far", {"n": 1}, 4, "k"),
        ("elsewhere", "default", {}, 4, None),
    ]
    assert [event.kind for event in told] == ["elsewhere", "elsewhere"]
    with pytest.raises(InvalidPayload, match="use plain values"):
        await app.enqueue("elsewhere", {"n": uuid4()})
    await app.close()
    app.close_sync()


async def test_it_is_part_of_a_transaction_of_the_callers(app, database, other):
    with other.connection.transaction(force_rollback=True):
        app.enqueue_sync("elsewhere", {"n": 1}, conn=other.connection)
        await app.enqueue("elsewhere", {"n": 1}, conn=other.connection)
        assert other.sql("select count(*) from tenure.jobs") == [(2,)]
    assert database.sql("select count(*) from tenure.jobs") == [(0,)]


async def test_a_job_that_takes_one_model_is_called_by_parameter_or_by_the_models_own_fields(dsn):
    sender, runner = Tenure(dsn), Tenure(dsn)

    @runner.job
    async def send(message: Message) -> str:
        return f"{message.to} {message.copies}"

    @runner.job
    async def same_name(message: Wrapped) -> str:
        return message.message

    async with serving(runner):
        for app in (sender, runner):
            by_parameter = await app.enqueue("send", {"message": {"to": "ann", "copies": 2}})
            by_fields = await app.enqueue("send", {"to": "bo"})
            a_field = await app.enqueue("same_name", {"message": "as it is"})
            assert await runner.client().wait(by_parameter.id, "10s") == "ann 2"
            assert await runner.client().wait(by_fields.id, "10s") == "bo 1"
            assert await runner.client().wait(a_field.id, "10s") == "as it is"
    await sender.close()
    await runner.close()


async def test_an_argument_without_annotation_that_json_does_not_have_is_reported_once(app, caplog):
    @app.job
    async def charge(amount, currency="EUR", *, at: datetime | None = None) -> None: ...

    await charge.enqueue(5)
    await charge.enqueue("5.0", at=datetime.now(UTC))
    assert caplog.records == []
    await charge.enqueue(Decimal("1.5"))
    await charge.enqueue(Decimal("2.5"))
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "parameter has no annotation, so its value arrives as plain JSON" in record.getMessage()
    assert (record.kind, record.parameter, record.given) == ("charge", "amount", "Decimal")


async def test_a_handle_of_a_known_kind_is_made_of_an_id(app):
    @app.job
    async def double(n: int) -> int | Fail:
        return 2 * n

    async with serving(app):
        handle = double.handle(str((await double.enqueue(4)).id))
        assert (handle.kind, await handle.result("30s")) == ("double", 8)
    with pytest.raises(ConfigError):
        await app.enqueue("")
