"""What is shown runs: every code block of the README and the docs is executed or checked against the product."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
from django.core.management import get_commands

from tenure.cli.main import cli
from tenure.settings import Settings
from tests.docs.page_runner import PageRunner
from tests.docs.pages import BLOCKS, FILES, PAGES, ROOT, blocks_of, name_of
from tests.waiting import until

COMMANDS = [(block.page, line) for block in BLOCKS if block.language == "sh" for line in block.lines]
PROGRAMMED = [page for page in PAGES if blocks_of(page, "python")]
SHORT = {"README.md"}
"""Pages whose programs run in `make test`. Those of all pages run in `make proof`."""

MARKUP = {"html", "js", "svelte", "jsx", "vue"}
"""What the pages of the tracker contain; `tests/web/test_tracker_pages.py` runs such pages in a browser."""

FRAMEWORKS = {"django", "fastapi", "flask", "httpx2", "pytest-asyncio", "sqlalchemy", "sqlalchemy[asyncio]"}
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])

COMES_TO = {"README.md": {"completed": 1}}
"""For pages that enqueue more jobs than they wait for: the outcome of these jobs."""


def test_there_are_blocks_to_check_and_no_unknown_language():
    assert {block.language for block in BLOCKS} == {"python", "sh", "toml", "sql", "json", "text", "", *MARKUP}


@pytest.mark.parametrize("page", [page if page in SHORT else pytest.param(page, marks=pytest.mark.slow) for page in PROGRAMMED])
async def test_the_programs_of_a_page_run_and_print_what_it_says(page, dsn, project, states):
    with PageRunner(page, project, dsn).following():
        if page in COMES_TO:
            await until(states, is_=COMES_TO[page])


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_every_command_shown_exists_with_its_options(page, line):
    match shlex.split(line):
        case ["make", goal, *_]:
            assert re.search(rf"^{goal}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        case ["tenure", *words]:
            understand(cli, words)
        case ["python", "manage.py", "tenure", *words]:
            understand(cli, words)
        case ["python", "manage.py", command, *_]:
            assert command in get_commands()
        case ["python", name]:
            assert name in {block.file for block in blocks_of(page, "python")}
        case ["export", assignment]:
            assert assignment.startswith("TENURE_")
        case ["pip", "install", *packages]:
            assert set(packages) <= {*FRAMEWORKS, *(name for name in packages if re.fullmatch(r"tenure(\[(\w+,?)+\])?", name))}
            assert {
                extra for name in packages for extra in re.findall(r"\w+", name.partition("[")[2]) if "tenure" in name
            } <= EXTRAS
        case ["uvicorn", target]:
            assert f"{target.partition(':')[0]}.py" in {block.file for block in blocks_of(page, "python")}
        case _:
            pytest.fail(f"{page}: nothing checks {line!r}")


def understand(command: click.Command, words: list[str]) -> None:
    """Down to the last sub-command, as far as words can be understood without being obeyed."""
    while isinstance(command, click.Group) and not (command.invoke_without_command and words[0].startswith("-")):
        name, *words = words
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"command {name!r} not found"
        command = found
    command.make_context(command.name, words)


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "toml"], ids=lambda b: b.page)
def test_every_settings_file_shown_is_accepted(block, tmp_path):
    (tmp_path / "tenure.toml").write_text(block.text)
    assert Settings.load(folder=tmp_path, environ={}) != Settings()


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_every_link_leads_somewhere(file):
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", file.read_text("utf-8"))
    missing = [link for link in links if "://" not in link[0] and not leads_somewhere(file, *link)]
    assert missing == []


def leads_somewhere(page: Path, link: str, anchor: str) -> bool:
    target = page.parent / link if link else page
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_can_be_found_from_the_index():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    linked = set(re.findall(r"\]\(([^)#]+)\)", index))
    pages = {file.relative_to(ROOT / "docs").as_posix() for file in FILES if (ROOT / "docs") in file.parents}
    of_the_site = {"contents.md", "changes.md"}
    unlinked = {page for page in pages - {"index.md"} - of_the_site if not page.startswith("decisions/")} - linked
    assert unlinked == set()
