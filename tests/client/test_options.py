"""Options that do not exist or cannot be meant are refused where they are written, with the nearest one that does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel, ConfigDict, Field

from tenure import ConfigError, Limit, Rate, Retry, Snooze, Tenure

LONG = "ё" * 101  # 202 bytes


@pytest.fixture
def app() -> Tenure:
    return Tenure()  # nothing here needs a database


@pytest.fixture
def work(app):
    @app.job
    async def work(n: int = 1) -> None: ...

    return work


MISSPELLED: dict[str, tuple[Any, str]] = {
    "a worker": (
        lambda app, job: app.worker(concurency=1),
        "app.worker() has no option 'concurency'; did you mean 'concurrency'?",
    ),
    "a worker inside": (lambda app, job: app.running(queue=["a"]), "app.running() has no option 'queue'; did you mean 'queues'?"),
    "a lease": (lambda app, job: app.lease("x", timeut=1), "app.lease() has no option 'timeut'; did you mean 'timeout'?"),
    "many jobs": (lambda app, job: app.enqueue_many([], con=1), "app.enqueue_many() has no option 'con'; did you mean 'conn'?"),
    "a snooze": (lambda app, job: Snooze(untill=1), "Snooze has no option 'untill'; did you mean 'until'?"),
    "a pause": (
        lambda app, job: app.client().pause("x", resaon=""),
        "client.pause() has no option 'resaon'; did you mean 'reason'?",
    ),
    "a setting": (
        lambda app, job: app.configure(retention_second=3),
        "app.configure() has no option 'retention_second'; did you mean 'retention_seconds'?",
    ),
    "an event": (lambda app, job: app.on("JobSettled"), "'JobSettled' is not an event"),
    "a job": (lambda app, job: app.job(queu="mail"), "@app.job has no option 'queu'; did you mean 'queue'?"),
    "a job's private option": (lambda app, job: app.job(default_retry=1), "@app.job has no option 'default_retry'"),
    "a call": (lambda app, job: job.using(prioritty=1), "using() has no option 'prioritty'; did you mean 'priority'?"),
    "a call by name": (
        lambda app, job: app.enqueue_sync("x", {}, qeue="a"),
        "enqueue() has no option 'qeue'; did you mean 'queue'?",
    ),
    "a retry": (lambda app, job: Retry(max_atempts=3), "Retry has no option 'max_atempts'; did you mean 'max_attempts'?"),
    "a limit": (lambda app, job: Limit(1, pre="tenant"), "Limit has no option 'pre'; did you mean 'per'?"),
    "a rate": (lambda app, job: Rate(1, evry="1s"), "Rate has no option 'evry'; did you mean 'every'?"),
    "a queue's limit": (lambda app, job: app.limit(queue="a", concurency=1), "did you mean 'concurrency'?"),
    "a schedule": (lambda app, job: app.cron("@daily", timezon="UTC"), "did you mean 'timezone'?"),
    "a duty": (lambda app, job: app.duty(evry="1m"), "did you mean 'every'?"),
    "an app": (lambda app, job: Tenure(shema="jobs"), "Tenure() has no option 'shema'; did you mean 'schema'?"),
    "a setting of an app": (lambda app, job: Tenure(retention_second=1), "did you mean 'retention_seconds'?"),
}


@pytest.mark.parametrize("case", MISSPELLED)
def test_a_misspelled_option_is_reported_with_the_nearest_one(app, work, case):
    make, told = MISSPELLED[case]
    with pytest.raises(ConfigError) as caught:
        make(app, work)
    assert told in str(caught.value)


def test_an_option_like_none_is_reported_with_all_there_are(work):
    with pytest.raises(ConfigError, match=r"using\(\) has no option 'zzz'; use one of queue, priority"):
        work.using(zzz=1)


VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "where it runs": ({"run_in": "proces"}, "run_in is 'proces'; did you mean 'process'?"),
    "where it runs, as a type": ({"run_in": 5}, "run_in is 5; use one of loop, thread, process"),
    "a flag": ({"atomic": "yes"}, "atomic is 'yes', but must be True or False"),
    "middleware that is one function": ({"middleware": print}, "give a list of functions"),
    "a queue that is not text": ({"queue": 5}, "queue is 5, but must be a name"),
    "a queue of spaces": ({"queue": "  "}, "queue is '  ', but must be a name"),
    "a long queue": ({"queue": LONG}, "202 bytes long, but at most 200 are allowed"),
    "a long capability": ({"capability": LONG}, "202 bytes long, but at most 200 are allowed"),
    "a long name": ({"name": LONG}, "202 bytes long, but at most 200 are allowed"),
    "how a retry grows": ({"retry": {"backoff": "linaer"}}, "did you mean 'linear'?"),
    "a key that is not a path": ({"key": 5}, 'give a path such as "message.payment_id", a function of the arguments, or True'),
    "a key that is off": ({"key": False}, "key is False: give a path"),
    "a key's path": ({"key": "mesage.id"}, "there is no parameter named 'mesage'; did you mean 'message'?"),
    "how long a key is kept": ({"key": "n", "key_for": "allways"}, "key_for"),
}


@pytest.mark.parametrize("case", VALUES)
def test_a_value_that_cannot_be_meant_is_reported_in_a_definition(app, case):
    options, told = VALUES[case]

    def work(n: int = 1, message: str = "") -> None: ...

    with pytest.raises(ConfigError) as caught:
        app.job(**options)(work)
    assert told in str(caught.value)


CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "a long queue": ({"queue": LONG}, "202 bytes long"),
    "a long capability": ({"capability": LONG}, "202 bytes long"),
    "attempts that are not a number": ({"max_attempts": "3"}, "max_attempts is '3', but must be a whole number from 1"),
    "no attempts": ({"max_attempts": 0}, "must be a whole number from 1"),
    "a time that is a text": ({"run_at": "tomorrow"}, "run_at is 'tomorrow', but must be a datetime"),
    "a time without a zone": ({"run_at": datetime(2030, 1, 1)}, "needs a time zone"),  # noqa: DTZ001
    "the end of time": ({"run_at": datetime.max.replace(tzinfo=UTC)}, "must lie between the years 1970 and 2200"),
    "the begin of time": ({"run_at": datetime.min.replace(tzinfo=UTC)}, "must lie between the years 1970 and 2200"),
    "an endless delay": ({"delay": float("inf")}, "delay is inf"),
    "a delay that is none": ({"delay": float("nan")}, "delay is nan"),
    "a delay of ages": ({"delay": timedelta(days=99_999)}, "delay is"),
    "a key that is a list": ({"key": ["a"]}, "key is ['a']: give a text, a number, a UUID, or True for the whole input"),
    "a key that is off": ({"key": False}, "or True for the whole input"),
    "a key without a text": ({"key": object()}, "or True for the whole input"),
    "meta that is a text": ({"meta": "a"}, "meta is 'a', but must be a mapping"),
    "a flag": ({"notify": "no"}, "notify is 'no', but must be True or False"),
    "patience": ({"within": "soon"}, "within"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_value_that_cannot_be_meant_is_reported_in_a_call(work, case):
    options, told = CALLS[case]
    with pytest.raises(ConfigError) as caught:
        work.using(**options)
    assert told in str(caught.value)


def test_keys_may_be_numbers_and_ids(work):
    unique = uuid4()
    assert work.using(key=unique).call().key == str(unique)
    assert work.using(key=5).call().key == "5"


class Message(BaseModel):
    tenant: str
    channel: str = Field(alias="by", default="mail")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


PATHS: dict[str, tuple[str, str | None]] = {
    "a field": ("tenant", None),
    "a field by its alias": ("by", None),
    "a field behind the parameter": ("message.tenant", None),
    "a field that does not exist": ("tennant", "parameter 'message' has no field named 'tennant'; did you mean 'tenant'?"),
    "the same behind the parameter": ("message.tennant", "did you mean 'tenant'?"),
}


@pytest.mark.parametrize("case", PATHS)
def test_a_path_into_a_model_is_checked_by_its_fields(app, case):
    path, told = PATHS[case]

    async def work(message: Message) -> None: ...

    if told is None:
        assert app.job(fair_by=path)(work).kind.limits["key"] in ("tenant", "by")
        return
    with pytest.raises(ConfigError) as caught:
        app.job(fair_by=path)(work)
    assert told in str(caught.value)


def test_a_path_into_a_model_that_takes_any_field_is_not_checked(app):
    async def work(message: Open) -> None: ...

    assert app.job(fair_by="tennant")(work).kind.limits["key"] == "tennant"


def test_a_path_that_starts_at_no_parameter_names_the_nearest(app):
    async def work(tenant: str, n: int) -> None: ...

    with pytest.raises(ConfigError, match=r"there is no parameter named 'tennant'; did you mean 'tenant'\?"):
        app.job(fair_by="tennant")(work)


def test_the_defaults_of_an_app_count_where_a_job_says_nothing():
    app = Tenure(retry=Retry(7, initial="3s"))

    @app.job
    async def plain() -> None: ...

    @app.job(max_attempts=2)
    async def fewer() -> None: ...

    @app.job(retry=Retry(4))
    async def own() -> None: ...

    assert app.kinds["plain"].retry == Retry(7, initial="3s")
    assert app.kinds["fewer"].retry == Retry(2, initial="3s")
    assert app.kinds["own"].retry == Retry(4)
    assert plain.call().fields.max_attempts == 7
    assert fewer.call().fields.max_attempts == 2
    assert own.call().fields.max_attempts == 4
    assert plain.using(max_attempts=5).call().fields.max_attempts == 5


def test_the_default_retry_can_be_a_setting(tmp_path, monkeypatch):
    (tmp_path / "tenure.toml").write_text('[retry]\nmax_attempts = 6\nbackoff = "linear"\ninitial = "2s"\njitter = false\n')
    monkeypatch.chdir(tmp_path)
    app = Tenure()

    @app.cron("@daily")
    async def plain() -> None: ...

    assert app.kinds["plain"].retry == Retry(6, backoff="linear", initial="2s", jitter=False)
    assert app.kinds.schedules["plain"].max_attempts == 6
    monkeypatch.setenv("TENURE_RETRY_MAX_ATTEMPTS", "9")
    app.configure()
    assert app.kinds["plain"].retry.max_attempts == 9
    assert Tenure(retry=2)._runtime.default_retry() == Retry(2)


def test_a_default_retry_that_cannot_be_meant_is_reported_with_the_other_settings(tmp_path, monkeypatch):
    (tmp_path / "tenure.toml").write_text('[retry]\nbackoff = "linaer"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="did you mean 'linear'"):
        _ = Tenure().settings
    with pytest.raises(ConfigError, match="retry has no option 'atempts'"):
        Tenure(retry={"atempts": 3})


def test_nothing_is_read_while_jobs_are_defined(tmp_path, monkeypatch):
    (tmp_path / "tenure.toml").write_text("not toml at all [")
    monkeypatch.chdir(tmp_path)
    app = Tenure()

    @app.cron("@daily")
    @app.job(queue="mail")
    async def plain() -> None: ...

    with pytest.raises(ConfigError, match="cannot be read"):
        plain.call()


def test_only_false_leaves_a_transaction_out_and_not_with_a_connection():
    @Tenure().job
    async def work() -> None: ...

    with pytest.raises(ConfigError, match="in_transaction is True, but can only be False: to join a transaction, give conn="):
        work.using(in_transaction=True)
    with pytest.raises(ConfigError, match="either conn or in_transaction=False"):
        work.using(conn=object(), in_transaction=False)
