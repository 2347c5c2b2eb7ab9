"""What commands of the web server need besides Tenure itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tenure.model.errors import ConfigError


@contextmanager
def needs_web_extra() -> Iterator[None]:
    """Around imports of `tenure.web`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("tenure"):
            raise
        raise ConfigError(f"{error.name} is not installed: run `pip install 'tenure[web]'`") from None
