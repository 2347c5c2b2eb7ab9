"""Creates Tenure's schema, and makes the unmanaged models known to Django's migrations.

A release with a newer schema adds a Django migration with `MigrateTenure(version=...)`, so that `migrate --check` notices it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations

from tenure.integrations.django.models import FinishedJob, LiveJob, Schedule, Worker
from tenure.integrations.django.schema_operation import MigrateTenure


def unmanaged(model: Any) -> migrations.CreateModel:
    """From the model itself: Django does not manage its table, so there is no earlier form that this would have to keep."""
    options = model._meta  # noqa: SLF001 - Django's API for models
    return migrations.CreateModel(
        name=options.object_name,
        fields=[(field.name, field.clone()) for field in options.fields],
        options={"managed": False, "db_table": options.db_table, "ordering": options.ordering},
    )


class Migration(migrations.Migration):
    initial = True
    atomic = False
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar = [MigrateTenure(version=1), *map(unmanaged, (LiveJob, FinishedJob, Worker, Schedule))]
