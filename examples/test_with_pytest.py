"""Test jobs with pytest: as functions, as what your code enqueues, and from end to end on a real PostgreSQL.

Needs `pip install pytest pytest-asyncio`. Run it with `pytest test_with_pytest.py`.
"""

import os
from collections.abc import Iterator

import pytest

from tenure import Tenure
from tenure.embedded import EmbeddedServer

# Your own code: import it from your package instead.

app = Tenure()


@app.job
async def send_welcome(user_id: int) -> str:
    return f"welcome sent to user {user_id}"


async def sign_up(user_id: int) -> None:
    await send_welcome.enqueue(user_id)


# The tests.


@pytest.fixture(scope="session")
def dsn(pytestconfig: pytest.Config) -> Iterator[str]:
    if given := os.environ.get("TEST_DSN"):  # not TENURE_DSN: the tests delete jobs
        yield given
        return
    assert pytestconfig.cache is not None
    with EmbeddedServer(pytestconfig.cache.mkdir("postgres"), durable=False) as server:  # without fsync: faster
        yield server.dsn


@pytest.fixture(autouse=True)
def database(dsn: str) -> Iterator[None]:
    app.configure(dsn=dsn)
    app.migrate_sync()
    yield
    if left := app.client().list_sync(kind="send_welcome").jobs:
        app.client().delete_sync(*(job.id for job in left))
    app.close_sync()


@pytest.mark.asyncio
async def test_a_job_is_a_function() -> None:
    assert await send_welcome(1) == "welcome sent to user 1"


@pytest.mark.asyncio
async def test_a_user_who_signs_up_gets_a_mail() -> None:
    await sign_up(2)
    [job] = (await app.client().list(kind="send_welcome")).jobs
    assert job.input == {"user_id": 2}


@pytest.mark.asyncio
async def test_the_mail_is_sent() -> None:
    async with app.running():
        handle = await send_welcome.enqueue(3)
        assert await handle.result(timeout="30s") == "welcome sent to user 3"
