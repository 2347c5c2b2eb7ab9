"""The contract that only the store imports the driver names every other package: a new one must not be forgotten."""

from __future__ import annotations

import tomllib
from pathlib import Path

import tenure

SOURCE = Path(tenure.__file__).parent
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
MAY_IMPORT_IT = {"store", "chaos"}


def test_the_contract_names_every_package_but_those_that_may_import_the_driver():
    contracts = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    [contract] = [contract for contract in contracts if contract["name"] == "Only the store imports the driver"]
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {name.removeprefix("tenure.") for name in contract["source_modules"]} == (modules | packages) - MAY_IMPORT_IT
