"""What people install: it contains what it needs, and works in an empty environment on every Python in reach."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tenure.version import __version__
from tests.packaging.distributions import PYTHONS, ROOT, build, run, tracked

pytestmark = pytest.mark.slow

PROGRAM = """
# jobs.py
from tenure import Tenure

app = Tenure()


@app.job
async def add(a: int, b: int) -> int:
    return a + b


async def main() -> None:
    await app.migrate()
    async with app.running():
        handle = await add.enqueue(2, 3)
        print("sum", await handle.result(timeout="1m"))
    await app.close()


if __name__ == "__main__":
    import asyncio

    asyncio.run(main())
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    source = tracked(tmp_path_factory.mktemp("source"))
    files = build(source, tmp_path_factory.mktemp("dist"), "--wheel", "--sdist")
    return {"wheel" if file.suffix == ".whl" else "sdist": file for file in files}


def test_the_wheel_contains_every_file_of_the_package_and_no_tests(built):
    with zipfile.ZipFile(built["wheel"]) as wheel:
        contained = {name for name in wheel.namelist() if name.startswith("tenure/")}
        others = {name.split("/")[0] for name in wheel.namelist()} - {"tenure"}
    tracked_names = run(["git", "ls-files", "src/tenure"], ROOT).split()
    assert {name.removeprefix("src/") for name in tracked_names} - contained == set()
    assert all(name.endswith(".dist-info") for name in others)


def test_a_wheel_can_be_built_from_the_sdist(built, tmp_path):
    with tarfile.open(built["sdist"]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    [source] = tmp_path.iterdir()
    [wheel] = build(source, tmp_path / "dist", "--wheel")
    assert zipfile.ZipFile(wheel).namelist() == zipfile.ZipFile(built["wheel"]).namelist()


def test_the_description_can_be_rendered_by_the_package_index(built):
    checked = run([sys.executable, "-m", "twine", "check", "--strict", *map(str, built.values())], ROOT)
    assert checked.count("PASSED") == 2


def test_the_image_copies_what_the_wheel_is_built_from(tmp_path):
    """The first stage of deploy/Dockerfile, carried out here: its COPY instructions, then a wheel."""
    stage = (ROOT / "deploy" / "Dockerfile").read_text("utf-8").split("\nFROM ")[1]
    for line in re.findall(r"^COPY (.+)$", stage, re.MULTILINE):
        *sources, target = line.split()
        for source in sources:
            place = tmp_path / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, place)
    [wheel] = build(tmp_path, tmp_path / "dist", "--wheel")
    assert "tenure/web/static/tenure.js" in zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize("python", PYTHONS.values(), ids=[f"python3.{minor}" for minor in PYTHONS])
def test_an_empty_environment_runs_a_job(built, python, tmp_path, dsn):
    run([python, "-m", "venv", str(tmp_path / "venv")], tmp_path)
    binaries = tmp_path / "venv" / "bin"
    run([str(binaries / "python"), "-m", "pip", "install", "-q", str(built["wheel"])], tmp_path)
    (tmp_path / "jobs.py").write_text(PROGRAM)
    assert run([str(binaries / "python"), "jobs.py"], tmp_path, TENURE_DSN=dsn) == "sum 5\n"
    assert "completed" in run([str(binaries / "tenure"), "jobs", "list", "--dsn", dsn], tmp_path)
    run([str(binaries / "python"), "-m", "pip", "check"], tmp_path)


def test_the_citation_names_this_version():
    assert re.findall(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE) == [__version__]
