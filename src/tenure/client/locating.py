"""Where an app is defined, as `module:attribute`, and how another process finds it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tenure.model.errors import ConfigError
from tenure.model.kinds import Registry

if TYPE_CHECKING:
    from tenure.client.runtime import ClientRuntime

MAIN = ("__main__", "__mp_main__")
"""The module name of the main program: here, and in processes that multiprocessing starts."""


def owner_name(app: object, kinds: Registry) -> str:
    """As `tenure worker --app` names it. For an app that is in no module: the module of its first schedule."""
    found = [f"{_file_name(module)}:{attribute}" for module, attribute in _definitions(app)]
    first = next((kinds[schedule.kind].fn.__module__ for schedule in kinds.schedules.values()), "app")
    return min(found, key=lambda path: (len(path), path), default=first)


def import_path(app: object) -> str:
    """The path by which another process imports the app; empty if it is in no module."""
    paths = [f"{_importable(module)}:{attribute}" for module, attribute in _definitions(app)]
    return min(paths, key=lambda path: (len(path), path), default="")


def _definitions(app: object) -> list[tuple[str, str]]:
    """The modules and attributes that hold the app."""
    return [
        (module_name, attribute)
        # Copies, because another thread may import modules at the same time.
        for module_name, module in dict(sys.modules).items()
        for attribute, value in dict(getattr(module, "__dict__", {})).items()
        if value is app
    ]


def _file_name(module: str) -> str:
    """A program that was started by its file is imported by the name of that file."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).stem if module == "__main__" and file else module


def _importable(module: str) -> str:
    """A program that was started with `python -m` can be imported by its own name; one that was started by its file cannot."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return str(spec.name) if module == "__main__" and spec is not None else module


def find_runtime(where: str) -> ClientRuntime:
    """`where` is `module:attribute` of the app."""
    module_name, _, attribute = where.partition(":")
    if not attribute:
        raise _lost(where, "it is in no module")
    try:
        runtime = getattr(getattr(_module(module_name), attribute, None), "_runtime", None)
    except ImportError as error:
        raise _lost(where, str(error)) from error
    if runtime is None:
        raise _lost(where, "there is no such app")
    found: ClientRuntime = runtime
    return found


def _module(name: str) -> ModuleType:
    if name in MAIN:
        for alias in MAIN[::-1]:
            if alias in sys.modules:
                return sys.modules[alias]
    return importlib.import_module(name)


def _lost(where: str, why: str) -> ConfigError:
    return ConfigError(
        f"this handle was pickled in a process whose app is {where!r}, which cannot be found here ({why}): "
        "define the app at the top level of a module, or use app.client().handle(job_id)"
    )
