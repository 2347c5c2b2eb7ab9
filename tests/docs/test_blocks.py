"""What is shown runs: every code block of the README and the docs is executed or checked against the product."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from tenure.cli.main import cli
from tenure.settings import Settings
from tests.processes import worker_process

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: str
    language: str
    text: str


BLOCKS = [Block(p.relative_to(ROOT).as_posix(), *found) for p in PAGES for found in FENCE.findall(p.read_text("utf-8"))]
COMMANDS = [
    (block.page, line)
    for block in BLOCKS
    if block.language == "sh"
    for line in block.text.splitlines()
    if line and not line.startswith("#")
]


def test_there_are_blocks_to_check_and_no_unknown_language():
    assert {block.language for block in BLOCKS} == {"python", "sh", "toml", ""}


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_every_command_shown_exists_with_its_options(page, line):
    words = shlex.split(line)
    match words:
        case ["make", goal, *_]:
            assert re.search(rf"^{goal}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        case ["tenure", name, *options]:
            command = cli.get_command(click.Context(cli), name)
            assert command is not None
            command.make_context(name, list(options))
        case ["export", assignment]:
            assert assignment.startswith("TENURE_")
        case ["pip", "install", what]:
            assert what == "tenure[embedded]"
        case _:
            pytest.fail(f"{page}: nothing checks {line!r}")


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "toml"], ids=lambda b: b.page)
def test_every_settings_file_shown_is_accepted(block, tmp_path):
    (tmp_path / "tenure.toml").write_text(block.text)
    assert Settings.load(folder=tmp_path, environ={}).dsn is not None


async def test_the_programs_of_the_readme_run_and_their_jobs_complete(dsn, project, states, eventually):
    programs = [block for block in BLOCKS if block.language == "python"]
    names = [re.match(r"# (\w+\.py)\n", block.text)[1] for block in programs]
    for name, block in zip(names, programs, strict=True):
        (project / name).write_text(block.text)
    for name, block in zip(names, programs, strict=True):
        if "asyncio.run(" in block.text:
            assert run_program(project, name, dsn) == "pending\n"
    with worker_process(project, dsn, "--processes", "2", "--concurrency", "20"):
        await eventually(states, is_={"completed": 101, "scheduled": 1}, within=20)


def run_program(folder: Path, name: str, dsn: str) -> str:
    env = {**os.environ, "TENURE_DSN": dsn}
    ran = subprocess.run([sys.executable, name], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
