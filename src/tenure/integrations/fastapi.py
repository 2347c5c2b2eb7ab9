"""FastAPI: the lifespan, a client to depend on, a transaction for each request, the web API below a path, errors as responses."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from fastapi import Depends

from tenure.app import Tenure
from tenure.client.client import Client
from tenure.integrations.starlette import add_error_handlers, lifespan, mount
from tenure.model.errors import ConfigError

__all__ = ["add_error_handlers", "client_of", "in_transaction", "lifespan", "mount"]


def client_of(app: Tenure) -> Any:
    """A dependency that gives the client of the app.

    `Jobs = Annotated[Client, client_of(app)]`
    """

    async def get_client() -> Client:
        return app.client()

    return Depends(get_client)


def in_transaction(sessions: Any) -> Any:
    """A dependency that gives a session of SQLAlchemy whose transaction is the request's.

    `Session = Annotated[AsyncSession, in_transaction(sessions)]`

    It is committed when the endpoint has returned and before the response is sent, and rolled back if the endpoint raises. So a
    client that has an answer can rely on it, and `job.using(conn=session)` enqueues with the rest or not at all.
    """
    return _before_the_response(_opened_by(sessions))


def _opened_by(sessions: Any) -> Callable[[], Any]:
    kinds = {type_.__name__ for type_ in type(sessions).__mro__}
    if "async_sessionmaker" in kinds:

        async def get_session() -> AsyncIterator[Any]:
            async with sessions.begin() as session:
                yield session

        return get_session
    if "sessionmaker" in kinds:

        def get_session_sync() -> Iterator[Any]:
            with sessions.begin() as session:
                yield session

        return get_session_sync
    raise ConfigError(f"in_transaction({sessions!r}): give a sessionmaker or an async_sessionmaker of SQLAlchemy")


def _before_the_response(dependency: Callable[[], Any]) -> Any:
    """FastAPI closes dependencies after the response was sent, unless their scope is `function`. Then a commit that fails would
    come after the answer that promised it."""
    if "scope" not in inspect.signature(Depends).parameters:
        raise ConfigError("in_transaction() needs FastAPI 0.121 or newer: older ones would commit after the response is sent")
    return Depends(dependency, scope="function")
