"""Help, completion and the reference: they need no database and import little."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tenure.cli import exit_codes
from tenure.cli.main import COMMANDS, cli
from tests.processes import run_process

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
SLOW = ("psycopg", "pydantic", "rich", "msgspec", "uvloop", "asyncpg")


def every_command(group: click.Group = cli, *path: str) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from every_command(command, *path, name)


OURS = [path for path in every_command() if path[0] not in ("demo", "up", "dev", "worker", "migrate", "sql", "simulate")]
# The other chaos commands import the workers.
QUICK = [path for path in OURS if path[0] != "chaos" or path == ("chaos",)]


def test_help_loads_nothing_slow():
    script = f"""
import io, json, sys
from contextlib import redirect_stdout, suppress
from tenure.cli.main import cli
for words in {[[], *map(list, QUICK)]!r}:
    shown = io.StringIO()
    with redirect_stdout(shown), suppress(SystemExit):
        cli([*words, "--help"], prog_name="tenure")
    assert "Usage: tenure " + " ".join(words) in shown.getvalue(), shown.getvalue()
print(json.dumps([name for name in {SLOW!r} if name in sys.modules]))
"""
    run = run_process([sys.executable, "-c", script], check=True, timeout=60)
    assert json.loads(run.stdout) == []


def test_the_root_and_its_groups_load_no_command_to_show_them():
    script = """
import json, sys
from contextlib import suppress
from tenure.cli.main import cli
for words in (["--help"], ["jobs", "--help"]):
    with suppress(SystemExit):
        cli(words, prog_name="tenure")
print(json.dumps(sorted(name for name in sys.modules if name.startswith("tenure.cli."))))
"""
    run = run_process([sys.executable, "-c", script], check=True, timeout=60)
    loaded = json.loads(run.stdout.splitlines()[-1])
    assert loaded == [
        "tenure.cli.command_groups",
        "tenure.cli.exit_codes",
        "tenure.cli.jobs",
        "tenure.cli.main",
        "tenure.cli.pipes",
    ]


def test_help_names_every_command_and_every_exit_code(line):
    shown = " ".join(line("--help").stdout.split())
    for name, (_, help_) in COMMANDS.items():
        assert f"{name} {help_}" in shown
    for code, meaning in exit_codes.MEANINGS.items():
        assert f"{code} {meaning}" in shown


@pytest.mark.parametrize("path", OURS, ids=" ".join)
def test_every_command_that_prints_takes_json(path):
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name)
    if isinstance(command, click.Group) or path in (("completion",), ("typegen",)):  # what they print is a program
        return
    assert any("--json" in option.opts for option in command.params)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_says_how_to_install_it_and_asks_us(line, shell):
    script = line("completion", shell).stdout
    assert f"tenure completion {shell}" in script.splitlines()[0]
    assert f"_TENURE_COMPLETE={shell}_complete" in script


def completed(line, words: str) -> list[str]:
    given = {"_TENURE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    return [row.partition(",")[2] for row in line(**given).stdout.splitlines()]


def test_completion_knows_commands_options_and_states(line):
    assert set(COMMANDS) <= set(completed(line, "tenure "))
    assert completed(line, "tenure jobs re") == ["report", "retry", "replay"]
    assert completed(line, "tenure jobs list --sta") == ["--state"]
    assert completed(line, "tenure jobs list --state failed,comp") == ["failed,completed"]
    assert completed(line, "tenure enqueue x --priority h") == ["high"]


def test_an_unknown_shell_is_wrong_usage(line):
    assert line("completion", "tcsh").exit_code == 2


def test_the_reference_names_every_command_and_exit_code():
    text = REFERENCE.read_text("utf-8")
    for path in OURS:
        assert f"tenure {' '.join(path)}" in text
    rows = dict(re.findall(r"^\| (\d+) \| (.+?) \|$", text, re.MULTILINE))
    assert {int(code) for code in rows} == {*exit_codes.MEANINGS, exit_codes.INTERRUPTED, exit_codes.CLOSED_PIPE}


def shown_commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", REFERENCE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [row for block in blocks for row in block.splitlines() if row.startswith("tenure ")]


@pytest.mark.parametrize("row", shown_commands())
def test_every_example_of_the_reference_is_understood(row):
    """With its options, which the check of all docs does not see inside groups."""
    command, words = cli, shlex.split(row)[1:]
    context = click.Context(cli, info_name="tenure")
    while isinstance(command, click.Group) and not (command.invoke_without_command and words[0].startswith("-")):
        command, words = command.get_command(context, words[0]), words[1:]
        assert command is not None
    command.make_context(command.name, words, parent=context)
