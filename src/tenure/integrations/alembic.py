"""Alembic: keeps autogenerate away from Tenure's schema, and creates it in a migration of yours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.model.errors import ConfigError
from tenure.store.migration_files import migration_sql, migrations
from tenure.store.statements import quoted


def include_name(name: str | None, type_: str, parent_names: Mapping[Any, str | None], *, schema: str = "tenure") -> bool:
    """For `context.configure(include_name=include_name)`: Tenure's schema is not read at all."""
    if type_ == "schema":
        return name != schema
    return parent_names.get("schema_name") != schema


def include_object(
    object: Any,  # noqa: A002 - Alembic's name
    name: str | None,
    type_: str,
    reflected: bool,
    compare_to: Any,
    *,
    schema: str = "tenure",
) -> bool:
    """For `context.configure(include_object=include_object)`, where `include_name` is in use already."""
    del name, reflected, compare_to
    owner = object if type_ == "table" else getattr(object, "table", None)
    return getattr(owner, "schema", None) != schema


def upgrade(op: Any, *, schema: str = "tenure") -> None:
    """Brings Tenure's schema to the version of the installed code, inside of a migration of yours: `upgrade(op)`.

    What earlier migrations, or `tenure migrate`, have done is not repeated. Add a migration with this call when an upgrade of
    Tenure brings new migrations, or use `tenure migrate` and leave Alembic out of it.
    """
    bind = op.get_bind()
    reached = _reached(bind, schema)
    missing = [migration for migration in migrations() if migration.version > reached]
    outside = [migration.label for migration in missing if migration.outside]
    if outside and reached:
        raise ConfigError(f"{', '.join(outside)} cannot run in a transaction: run `tenure migrate` first, then this migration")
    if missing:
        text = migration_sql(schema, after=reached, transaction=False)
        # Of a new schema the tables are empty: their indexes need not be built beside readers and writers.
        text = text if reached else text.replace(" concurrently ", " ")
        bind.execution_options(no_parameters=True).exec_driver_sql(text)


def _reached(bind: Any, schema: str) -> int:
    """The newest version in the database; 0: it has no schema of Tenure's."""
    table = f"{quoted(schema)}.migrations"
    if bind.exec_driver_sql(f"select to_regclass('{table}')").scalar() is None:
        return 0
    return int(bind.exec_driver_sql(f"select coalesce(max(version), 0) from {table} where phase = 'pre'").scalar())  # noqa: S608
