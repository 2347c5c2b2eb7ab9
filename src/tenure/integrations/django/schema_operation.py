"""The operation by which `manage.py migrate` creates and upgrades Tenure's schema."""

from __future__ import annotations

from typing import Any

from django.db.migrations.operations.base import Operation

from tenure.integrations.django.app import app
from tenure.store.migration_files import migration_sql


class MigrateTenure(Operation):
    """Brings the schema to the version of the installed code, at least to `version`.

    Tenure's own migrator runs it, on its own connection: it knows what has been applied, waits only briefly for locks, and can
    run what must not be in a transaction. So a repeated or interrupted `migrate` does no harm.
    """

    reversible = True
    reduces_to_sql = True
    atomic = False

    def __init__(self, version: int) -> None:
        self.version = version

    def state_forwards(self, app_label: str, state: Any) -> None:
        """It has no models."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        del app_label, from_state, to_state
        if schema_editor.connection.alias != app.project.database:
            return
        if schema_editor.collect_sql:
            schema_editor.collected_sql.append(migration_sql(app.settings.schema, transaction=False))
            return
        app.migrate_sync()

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """The jobs stay: `drop schema` is yours to run."""

    def describe(self) -> str:
        return f"Bring Tenure's schema to version {self.version}"

    @property
    def migration_name_fragment(self) -> str:
        return f"schema_{self.version}"
