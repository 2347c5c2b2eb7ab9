"""Alembic in a project beside Tenure: autogenerate leaves our schema alone, and a migration creates it."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Column, Integer, MetaData, Table, create_engine

from tenure import SchemaMismatch, Tenure
from tenure.integrations.alembic import include_name, include_object, upgrade
from tests.conftest import _admin
from tests.docs.page_runner import as_url


def url(dsn: str) -> str:
    return as_url(dsn).replace("postgresql:", "postgresql+psycopg:", 1)


@pytest.fixture
def metadata():
    metadata = MetaData()
    Table("orders", metadata, Column("id", Integer, primary_key=True))
    return metadata


@pytest.mark.parametrize("options", [{}, {"include_name": include_name}, {"include_object": include_object}])
def test_autogenerate_leaves_the_schema_alone(dsn, metadata, options):
    # The role of the embedded server has the name of our schema, which would be the default schema otherwise.
    engine = create_engine(url(dsn), connect_args={"options": "-c search_path=public"})
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_schemas": True, **options})
        changes = compare_metadata(context, metadata)
    engine.dispose()
    if options:
        assert [change[0] for change in changes] == ["add_table"]
    else:
        assert len(changes) > 20  # without our help, it would drop all our tables


async def test_a_migration_creates_the_schema_with_the_rest(server_dsn, metadata):
    _admin(server_dsn, "create database alembic_migrated")
    dsn = server_dsn.replace("/tenure?", "/alembic_migrated?")
    engine = create_engine(url(dsn))
    try:
        with engine.connect() as connection:
            run = Operations(MigrationContext.configure(connection))
            upgrade(run)
            upgrade(run)  # a second time does nothing
            connection.rollback()
        with pytest.raises(SchemaMismatch):
            await Tenure(dsn).check()
        with engine.begin() as connection:
            upgrade(Operations(MigrationContext.configure(connection)))
        await Tenure(dsn).check()
    finally:
        engine.dispose()
        _admin(server_dsn, "drop database alembic_migrated with (force)")
