"""What a handler raises in a process of its own arrives as the same exception, for middleware, logs and error trackers."""

from __future__ import annotations

import traceback

import pytest

from tenure import ProcessDied, RemoteError, Tenure, TenureError
from tenure.worker.process.exceptions import Remote, packed, unpacked
from tests.worker import remote_app
from tests.worker.serving import serving
from tests.worker.shared_worker import failure


@pytest.fixture
async def seen(dsn, monkeypatch):
    """What a middleware sees of each kind's error."""
    monkeypatch.setenv("TENURE_DSN", dsn)
    app = remote_app.app
    app.configure()
    caught: dict[str, Exception] = {}

    @app.middleware
    async def look(ctx, call_next):
        try:
            return await call_next()
        except Exception as error:
            caught[ctx.kind] = error
            raise

    async with serving(app):
        yield caught
    app.kinds.middleware.remove(look)
    await app.close()


async def test_a_middleware_can_catch_the_class_it_knows(seen):
    failed = await failure(await remote_app.raises_value_error.enqueue())
    error = seen["raises_value_error"]
    assert (type(error), error.args) == (ValueError, ("no good",))
    assert (failed.error_type, failed.message) == ("ValueError", "no good")
    assert 'raise ValueError("no good")' in failed.traceback
    assert "RemoteTraceback" not in failed.traceback


async def test_an_exception_of_the_apps_own_keeps_its_attributes(seen):
    await failure(await remote_app.raises_declined.enqueue())
    error = seen["raises_declined"]
    assert type(error) is remote_app.Declined
    assert (error.code, error.limits, str(error)) == (51, {"day": 100}, "card declined with code 51")


async def test_a_process_that_dies_is_a_public_error_for_middleware(seen):
    failed = await failure(await remote_app.dies.enqueue("ada"))
    error = seen["dies"]
    assert (type(error), str(error)) == (ProcessDied, "exit code 7")
    assert isinstance(error, TenureError)
    assert failed.state == "dead_letter"


async def test_the_traceback_of_the_other_process_is_its_cause(seen):
    await failure(await remote_app.raises_declined.enqueue())
    text = "".join(traceback.format_exception(seen["raises_declined"]))
    assert "raise Declined(51)" in text
    assert "remote_app.py" in text


async def test_an_exception_whose_class_is_not_known_here_is_a_remote_error(seen):
    failed = await failure(await remote_app.raises_unknown.enqueue())
    error = seen["raises_unknown"]
    assert type(error) is RemoteError
    assert (error.type_name, str(error)) == ("only_over_there.Strange", "only_over_there.Strange: from afar")
    assert "raise_strange" in error.traceback
    assert (failed.error_type, failed.message) == ("Strange", "from afar")


async def test_an_exception_that_cannot_be_carried_is_a_remote_error(seen):
    await failure(await remote_app.raises_what_cannot_be_pickled.enqueue())
    error = seen["raises_what_cannot_be_pickled"]
    assert (type(error), error.type_name) == (RemoteError, "tests.worker.remote_app.Declined")


@pytest.mark.parametrize("name", ["SystemExit", pytest.param("KeyboardInterrupt", marks=pytest.mark.slow)])
async def test_what_would_end_the_worker_is_a_remote_error(seen, name):
    await failure(await remote_app.raises_named.enqueue(name))
    error = seen["raises_named"]
    assert (type(error), error.type_name) == (RemoteError, f"builtins.{name}")
    assert await (await remote_app.fine.enqueue()).result("30s") == "fine"


async def test_its_retry_policy_counts_as_in_any_other_executor(seen):
    handle = await remote_app.gives_up.enqueue()
    await failure(handle)
    assert (await handle.status()).attempt == 1


async def test_a_middleware_may_turn_the_class_it_knows_into_a_result(dsn, monkeypatch):
    monkeypatch.setenv("TENURE_DSN", dsn)
    app = Tenure(dsn)

    async def forgive(ctx, call_next):
        try:
            return await call_next()
        except remote_app.Declined as declined:
            return f"declined with {declined.code}"

    job = app.job(name="raises_declined", run_in="process", middleware=[forgive])(remote_app.raises_declined.kind.fn)
    async with serving(app):
        assert await (await job.enqueue()).result("30s") == "declined with 51"
    await app.close()


class Plain(Exception):
    pass


class Frozen(Exception):
    def __init__(self, code):
        super().__init__(code)
        object.__setattr__(self, "code", code)

    def __setattr__(self, name, value):
        raise TypeError("frozen")


class Circular(Exception):
    def __reduce__(self):
        return (Circular, (self,))


class Bare(Exception):
    def __init__(self, first, second):
        """Without its parent's."""
        self.first, self.second = first, second


REMOTE = Remote("Traceback ...", wanted=True)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("one", 2),
        KeyError("key"),
        OSError(2, "No such file", "a.txt"),
        ConnectionRefusedError(111, "refused"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
        ImportError("no", name="x", path="y"),
        ExceptionGroup("several", [ValueError("one"), KeyError("two")]),
        Plain(),
        Frozen(5),
        Bare(1, second=2),
        RemoteError("a.B", "text", "traceback"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_arrives_as_it_was(error):
    arrived = unpacked(packed(error), REMOTE)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    kept = {name: value for name, value in vars(arrived).items() if not name.startswith("_tenure")}
    assert kept == vars(error) or isinstance(error, ExceptionGroup)
    assert getattr(arrived, "filename", None) == getattr(error, "filename", None)


@pytest.mark.parametrize(
    "error", [Circular("x"), Plain("x" * 100_000), Plain(lambda: None), StopIteration(1), StopAsyncIteration(1)]
)
def test_what_does_not_arrive_as_it_was_arrives_as_a_remote_error(error):
    arrived = unpacked(packed(error), REMOTE)
    assert type(arrived) is RemoteError
    assert arrived.type_name.endswith(type(error).__name__)


def test_an_attribute_of_a_module_that_is_not_imported_here_does_not_import_it():
    import sys
    import types

    module = types.ModuleType("seen_only_there")
    exec("class Thing: pass", module.__dict__)
    sys.modules["seen_only_there"] = module
    told = packed(Plain(module.Thing()))
    del sys.modules["seen_only_there"]
    assert type(unpacked(told, REMOTE)) is RemoteError
    assert "seen_only_there" not in sys.modules
