"""Imports the user's app, given as `module:attribute`."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from tenure.model.errors import ConfigError

if TYPE_CHECKING:
    from tenure.app import Tenure


def load_app(path: str, folder: str) -> Tenure:
    from tenure.app import Tenure  # noqa: PLC0415 - the supervisor must not import it

    module_name, _, attribute = path.partition(":")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and module_name.startswith(error.name):
            raise ConfigError(
                f"--app {path}: no module {error.name!r} in {folder} or on the import path: "
                "run it in your project's folder, or name your app: --app MODULE:APP"
            ) from None
        raise
    found = getattr(module, attribute or "app", None)
    if isinstance(found, Tenure):
        found.kinds.home = module_name
        return found
    apps = [name for name, value in vars(module).items() if isinstance(value, Tenure)]
    hint = f"did you mean {module_name}:{apps[0]}?" if apps else f"{module_name} has no Tenure() at its top level"
    raise ConfigError(f"--app {path}: {attribute or 'app'!r} is not a Tenure app; {hint}")
