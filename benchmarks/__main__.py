"""`python -m benchmarks`: measures everything, prints one table."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from benchmarks import machine, report
from benchmarks.engines import comparison as engine_comparison
from benchmarks.engines.comparison import EngineComparison, EngineSizes
from benchmarks.engines.registry import ENGINES, Engine
from benchmarks.peers import report as peer_report
from benchmarks.peers import sizes as peer_sizes
from benchmarks.peers.comparison import Comparison
from benchmarks.peers.registry import PEERS, Candidate
from benchmarks.peers.sizes import PeerSizes
from benchmarks.plan import Bench, with_needs
from benchmarks.rows import ROWS
from benchmarks.server import open_server
from benchmarks.sizes import FULL, QUICK, Sizes
from tenure.chaos.summary import publish

S = TypeVar("S", Sizes, PeerSizes, EngineSizes)
C = TypeVar("C", bound=Candidate)

LETTERS = sorted({row.letter for row in ROWS})


def main() -> None:
    options = _options()
    logging.basicConfig(level=logging.WARNING)
    with open_server(options.dsn) as server:
        surveyed = machine.survey(server)
        print(surveyed, file=sys.stderr, flush=True)
        if options.engines is not None:
            engines = EngineComparison(
                server, _changed(engine_comparison.QUICK if options.quick else EngineSizes(), options), options.engines
            )
            engines.run()
        elif options.peers is None:
            bench = Bench(server, _changed(QUICK if options.quick else FULL, options), with_needs(options.only))
            bench.run()
        else:
            sizes = _changed(peer_sizes.QUICK if options.quick else peer_sizes.FULL, options)
            comparison = Comparison(server, sizes, options.peers)
            comparison.run()
    to_stdout = options.json == "-"
    console = _console(stderr=to_stdout)
    if options.engines is not None:
        engines.show(console, surveyed)
        found = engines.as_json(surveyed)
        block, text = "engines", engines.as_markdown(surveyed)
    elif options.peers is None:
        report.show(console, surveyed, bench, quick=options.quick)
        found = report.as_json(surveyed, bench, quick=options.quick)
        block, text = "bench", report.as_markdown(surveyed, bench)
    else:
        peer_report.show(console, surveyed, comparison, quick=options.quick)
        found = peer_report.as_json(surveyed, comparison, quick=options.quick)
        block, text = "peers", peer_report.as_markdown(surveyed, comparison)
    if options.publish:
        publish(options.publish, block, text)
    if options.json:
        document = json.dumps(found, indent=2)
        if to_stdout:
            print(document)
        else:
            Path(options.json).write_text(document + "\n", "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Measures Tenure on a real PostgreSQL.")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: a first look in a minute")
    parser.add_argument("--only", type=_letters, default=LETTERS, metavar="a,b,c", help=f"some rows only, of {','.join(LETTERS)}")
    parser.add_argument(
        "--peers",
        nargs="?",
        type=_peers,
        const=PEERS,
        metavar="NAMES",
        help=f"other queues and a bare loop instead, side by side with Tenure; some of {','.join(peer.name for peer in PEERS)}",
    )
    parser.add_argument(
        "--engines",
        nargs="?",
        type=_engines,
        const=ENGINES,
        metavar="NAMES",
        help=f"workflow engines instead, side by side with Tenure; some of {','.join(engine.name for engine in ENGINES)}",
    )
    parser.add_argument("--rounds", type=int, help="how often each is measured; the median counts (3; quick: 1)")
    parser.add_argument("--jobs", type=int, help="jobs in each drain (50,000; quick: 10,000, with --peers 5,000)")
    parser.add_argument("--concurrency", type=int, help="jobs at a time in each draining child (400); not with --peers")
    parser.add_argument("--json", metavar="FILE", help="write all figures as JSON; - for standard output")
    parser.add_argument(
        "--publish",
        type=Path,
        metavar="PAGE",
        help="write the table into this page, into its block `bench`, `peers` or `engines`",
    )
    parser.add_argument("--dsn", help="a PostgreSQL to use, with the right to create databases; else one is started")
    return parser.parse_args()


def _letters(text: str) -> list[str]:
    letters = [letter.strip(" ()") for letter in text.split(",")]
    if unknown := [letter for letter in letters if letter not in LETTERS]:
        raise argparse.ArgumentTypeError(f"unknown row {', '.join(unknown)}: choose from {','.join(LETTERS)}")
    return letters


def _peers(text: str) -> tuple[Candidate, ...]:
    return _named(text, PEERS)


def _engines(text: str) -> tuple[Engine, ...]:
    return _named(text, ENGINES)


def _named(text: str, candidates: tuple[C, ...]) -> tuple[C, ...]:
    known = {candidate.name: candidate for candidate in candidates}
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is not measured: choose from {','.join(known)}")
    return tuple(known[name] for name in names)


def _changed(sizes: S, options: argparse.Namespace) -> S:
    given = {"rounds": options.rounds, "jobs": options.jobs, "concurrency": options.concurrency}
    known = {field.name for field in fields(sizes)}
    return replace(sizes, **{name: value for name, value in given.items() if value and name in known})


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, width=report.WIDTH)


if __name__ == "__main__":
    main()
