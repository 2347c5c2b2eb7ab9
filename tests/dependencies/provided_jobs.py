"""At module level: processes import them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from tenure import Provide, Tenure, WorkflowContext, provided

app = Tenure()


class Session:
    is_open = True

    def describe(self, n: int) -> str:
        return f"session of {n}, {'open' if self.is_open else 'closed'}"


async def get_session() -> AsyncIterator[Session]:
    session = Session()
    yield session
    session.is_open = False


def get_plain() -> Iterator[Session]:
    session = Session()
    yield session
    session.is_open = False


@app.job
async def on_loop(n: int, session: Annotated[Session, Provide(get_session)] = provided) -> str:
    return session.describe(n)


@app.job
def in_thread(n: int, session: Annotated[Session, Provide(get_plain)] = provided) -> str:
    return session.describe(n)


@app.workflow
async def as_workflow(ctx: WorkflowContext, n: int, session: Annotated[Session, Provide(get_session)] = provided) -> str:
    await ctx.sleep("a day", "1d")
    return session.describe(n)


@app.job(run_in="process")
def in_process(n: int, session: Annotated[Session, Provide(get_plain)] = provided) -> str:
    return session.describe(n)
