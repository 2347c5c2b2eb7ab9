"""What an app and its jobs are made of, for this package."""

from __future__ import annotations

from typing import Any

from tenure.app import Tenure
from tenure.client.job import Job
from tenure.client.runtime import ClientRuntime

AnyJob = Job[Any, Any, Any, Any]


def runtime_of(owner: Tenure | AnyJob) -> ClientRuntime:
    return owner._runtime  # noqa: SLF001 - this package is part of the product
