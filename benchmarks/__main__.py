"""`python -m benchmarks`: measures everything, prints one table."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks import machine, report
from benchmarks.plan import Bench, with_needs
from benchmarks.rows import ROWS
from benchmarks.server import open_server
from benchmarks.sizes import FULL, QUICK, Sizes

LETTERS = sorted({row.letter for row in ROWS})


def main() -> None:
    options = _options()
    logging.basicConfig(level=logging.WARNING)
    sizes = _sizes(options)
    with open_server(options.dsn) as server:
        surveyed = machine.survey(server)
        print(surveyed, file=sys.stderr, flush=True)
        bench = Bench(server, sizes, with_needs(options.only))
        bench.run()
    to_stdout = options.json == "-"
    report.show(_console(stderr=to_stdout), surveyed, bench, quick=options.quick)
    if options.json:
        text = json.dumps(report.as_json(surveyed, bench, quick=options.quick), indent=2)
        if to_stdout:
            print(text)
        else:
            Path(options.json).write_text(text + "\n", "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Measures Tenure on a real PostgreSQL.")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: a first look in a minute")
    parser.add_argument("--only", type=_letters, default=LETTERS, metavar="a,b,c", help=f"some rows only, of {','.join(LETTERS)}")
    parser.add_argument("--rounds", type=int, help="how often each is measured; the median counts (3; quick: 1)")
    parser.add_argument("--concurrency", type=int, help="jobs at a time in each draining child (400)")
    parser.add_argument("--json", metavar="FILE", help="write all figures as JSON; - for standard output")
    parser.add_argument("--dsn", help="a PostgreSQL to use, with the right to create databases; else one is started")
    return parser.parse_args()


def _letters(text: str) -> list[str]:
    letters = [letter.strip(" ()") for letter in text.split(",")]
    if unknown := [letter for letter in letters if letter not in LETTERS]:
        raise argparse.ArgumentTypeError(f"there is no row {', '.join(unknown)}: choose of {','.join(LETTERS)}")
    return letters


def _sizes(options: argparse.Namespace) -> Sizes:
    given = {"rounds": options.rounds, "concurrency": options.concurrency}
    return replace(QUICK if options.quick else FULL, **{name: value for name, value in given.items() if value})


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, width=report.WIDTH)


if __name__ == "__main__":
    main()
