"""The app of a Django project: its settings and its database are those of Django."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tenure.app import Tenure
from tenure.client.ambient import AmbientTransaction
from tenure.integrations.django import database_names, handler_connections
from tenure.integrations.django.ambient import AtomicBlocks
from tenure.integrations.django.conf import ProjectSettings, addresses, project_settings, tenure_settings
from tenure.model.kinds import Kind, Registry
from tenure.settings import Settings
from tenure.store.borrowed.django_adapter import connection_of

if TYPE_CHECKING:
    from tenure.store.target import DatabaseTarget


class DjangoKinds(Registry):
    """In plain functions, `ctx.transaction()` is on Django's connection, so that what the ORM writes is part of it."""

    def add(self, kind: Kind) -> None:
        is_plain = not kind.signature.is_async
        super().add(replace(kind, session=_connection if is_plain else None))


def _connection() -> object:
    return connection_of(app.project.database)


class DjangoTenure(Tenure):
    """Reads Django's settings when they are first needed, and follows Django to the test database and back."""

    def __init__(self) -> None:
        self._project: ProjectSettings | None = None
        self._addresses: object = None
        self._overridden: set[str] = set()
        self.real_databases: dict[str, str] = {}
        """Their names, by alias, as they are at the start of the process."""
        super().__init__()
        self.around_thread(handler_connections.around_plain_handler)
        self.around_coroutine(handler_connections.around_coroutine_handler)

    @property
    def project(self) -> ProjectSettings:
        """The setting `TENURE`."""
        if self._project is None:
            self._project = project_settings()
        return self._project

    def reread_settings(self) -> None:
        """Django's settings have changed."""
        self._project = self._addresses = None

    def follow_django(self) -> None:
        """Takes over what Django's settings are now, unless the command line gave something else."""
        project = self.project
        now = addresses()
        if now == self._addresses:
            return
        overridden = {name: value for name, value in self.given.items() if name in self._overridden}
        self.given = {**tenure_settings(project), **overridden}
        database_names.pass_on(self.real_databases)
        super().configure()  # forgets what was made from the former settings
        self._addresses = now

    def configure(self, **given: Any) -> None:
        super().configure(**given)
        self._overridden |= {name for name, value in given.items() if value is not None}

    @contextmanager
    def _configured(self, **given: Any) -> Iterator[None]:
        before = set(self._overridden)
        try:
            with super()._configured(**given):
                yield
        finally:
            self._overridden = before
            self._addresses = None  # the next use takes over what Django's settings are then

    @property
    def settings(self) -> Settings:
        self.follow_django()
        return super().settings

    @property
    def _database(self) -> DatabaseTarget:
        self.follow_django()
        if "dsn" not in self._overridden:
            database_names.refuse_real(self.project.database, self.real_databases)
        return super()._database

    def _new_registry(self) -> Registry:
        return DjangoKinds()

    def _ambient_transaction(self) -> AmbientTransaction:
        return AtomicBlocks(lambda: self.project)


app = DjangoTenure()
