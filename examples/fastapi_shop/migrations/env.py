"""Alembic: autogenerate leaves Tenure's schema alone."""

from alembic import context
from shop.db import Base, sync_engine

from tenure.integrations.alembic import include_name

with sync_engine.connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, include_schemas=True, include_name=include_name)
    with context.begin_transaction():
        context.run_migrations()
