"""Defining jobs: the function stays a function, and mistakes are reported at once."""

from __future__ import annotations

import pytest

from tenure import ConfigError, Context, Tenure, UnknownKind


@pytest.fixture
def app() -> Tenure:
    return Tenure()  # nothing here needs a database


async def test_the_function_stays_callable(app):
    @app.job
    async def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    @app.job(queue="mail")
    def triple(n: int) -> int:
        return 3 * n

    assert await double(4) == 8
    assert triple(4) == 12
    assert (double.__name__, double.__doc__, double.name) == ("double", "Twice as much.", "double")
    assert set(app.kinds) == {"double", "triple"}


def test_two_functions_of_one_name_are_a_mistake_that_names_both(app):
    @app.job(name="work")
    async def first() -> None: ...

    with pytest.raises(ConfigError, match=r"first.*second"):

        @app.job(name="work")
        async def second() -> None: ...


def test_the_same_function_may_be_defined_again(app):
    async def work() -> None: ...

    app.job(work)
    app.job(queue="mail")(work)
    assert app.kinds["work"].queue == "mail"


def test_an_unknown_kind_is_reported_with_the_nearest_known_one(app):
    @app.job
    async def send_email() -> None: ...

    with pytest.raises(UnknownKind, match="send_email") as caught:
        app.kinds["send_mail"]
    assert caught.value.known == ["send_email"]


def test_the_schema_describes_the_arguments_without_the_context(app):
    @app.job
    async def work(ctx: Context, n: int, name: str = "x") -> None: ...

    schema = work.schema()
    assert set(schema["properties"]) == {"n", "name"}
    assert schema["required"] == ["n"]


MISTAKES = {
    "priority": {"priority": 101},
    "timeout": {"timeout": "soon"},
    "lease": {"lease": -1},
    "retry and max_attempts": {"retry": 3, "max_attempts": 4},
    "a coroutine in a thread": {"run_in": "thread"},
    "no attempts": {"max_attempts": 0},
    "an empty queue": {"queue": ""},
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_definition_is_reported_at_once(app, mistake):
    with pytest.raises(ConfigError):

        @app.job(**MISTAKES[mistake])
        async def work() -> None: ...


def test_a_plain_function_cannot_run_in_the_loop(app):
    with pytest.raises(ConfigError, match="block"):

        @app.job(run_in="loop")
        def work() -> None: ...


def test_an_unknown_option_is_reported(app):
    with pytest.raises(ConfigError, match=r"@app\.job has no option 'queu'; did you mean 'queue'"):

        @app.job(queu="mail")
        async def work() -> None: ...


def test_a_job_is_found_by_its_name(app):
    @app.job(name="mail.send")
    async def send(to: str) -> None: ...

    assert app.jobs["mail.send"] is send
    assert list(app.jobs) == ["mail.send"]
    assert app.jobs["mail.send"].call("ann").kind == "mail.send"
    assert "mail" not in app.jobs


def test_an_unknown_name_is_refused_with_the_nearest_ones(app):
    for name in ("send_email", "send_emails", "resize"):
        app.job(name=name)(lambda: None)
    with pytest.raises(UnknownKind) as caught:
        app.jobs["send_emial"]
    assert str(caught.value) == "no job named 'send_emial' in this app; did you mean 'send_email' or 'send_emails'?"
    assert app.jobs.get("send_emial") is None
    with pytest.raises(KeyError, match="this app defines no jobs"):
        Tenure().jobs["a"]
