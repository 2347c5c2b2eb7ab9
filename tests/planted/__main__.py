"""Plants bugs in copies of the source, one at a time, and reports which of them the tests catch.

    python -m tests.planted [names...] [--sample 40 --seed 7] [--json] [--jobs 2] [--publish PAGE]

First all the tests that are to catch them must pass on the source as it is: otherwise the score would have no value.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from tests.planted import record
from tests.planted.bug import Bug
from tests.planted.bugs import BUGS
from tests.planted.catching import Catch, Ground, baseline, ground, hunt

ALL_CAUGHT, SOME_SURVIVED, NO_SCORE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description="How many planted bugs do the tests catch?")
    parser.add_argument("names", nargs="*", help="only these bugs")
    parser.add_argument("--sample", type=int, metavar="N", help="some of them, drawn from a seed")
    parser.add_argument("--seed", type=int, default=None, help="of the sample; else one is drawn, and printed")
    parser.add_argument("--json", action="store_true", help="the result as JSON on stdout, the rest on stderr")
    parser.add_argument("--publish", type=Path, metavar="PAGE", help="keep the results, and write them into this page")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--by", action="append", metavar="TEST", help="do these tests catch them, instead of their own?")
    parser.add_argument("--list", action="store_true", help="list the bugs and plant none")
    parser.add_argument(
        "--no-baseline", action="store_true", help="while a bug or a test is being written, or after a run of all tests"
    )
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - {bug.name for bug in BUGS}:
        parser.error(f"no such bug: {', '.join(sorted(unknown))}")
    bugs = [bug for bug in BUGS if not given.names or bug.name in given.names]
    if given.sample is not None:
        bugs = sample(bugs, given.sample, given.seed)
    if given.by:
        bugs = [replace(bug, caught_by=tuple(given.by)) for bug in bugs]
    if given.list:
        write("\n".join(f"{bug.name}: {bug.breaks} ({bug.promise})" for bug in bugs))
        return ALL_CAUGHT
    return score(bugs, jobs=given.jobs, as_json=given.json, check=not given.no_baseline, page=given.publish)


def sample(bugs: list[Bug], size: int, seed: int | None) -> list[Bug]:
    drawn = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    write(
        f"a sample of {min(size, len(bugs))} of {len(bugs)} bugs: the same again with --sample {size} --seed {drawn}", sys.stderr
    )
    chosen = random.Random(drawn).sample(range(len(bugs)), min(size, len(bugs)))
    return [bugs[number] for number in sorted(chosen)]


def score(bugs: list[Bug], *, jobs: int, as_json: bool, check: bool, page: Path | None = None) -> int:
    began = time.monotonic()
    with ground() as on:
        if check and (failure := baseline(sorted({test for bug in bugs for test in bug.caught_by}), on, jobs)):
            write(failure, sys.stderr)
            write("no score: these tests must pass before any bug is planted", sys.stderr)
            return NO_SCORE
        if check:
            write(f"baseline passed after {time.monotonic() - began:.0f} s", sys.stderr)
        catches = hunt_all(bugs, on, jobs, sys.stderr if as_json else sys.stdout)
    caught = sum(catch.caught for catch in catches)
    if page is not None:
        record.add(catches)
        record.publish(page)
    if as_json:
        totals = {"bugs": len(bugs), "caught": caught, "seconds": round(time.monotonic() - began, 1)}
        write(json.dumps({**totals, "catches": [catch.to_json() for catch in catches]}, indent=2))
    else:
        write(f"planted bugs: {len(bugs)}, caught: {caught}")
    return ALL_CAUGHT if caught == len(bugs) else SOME_SURVIVED


def hunt_all(bugs: list[Bug], on: Ground, jobs: int, progress: TextIO) -> list[Catch]:
    catches = []
    with ThreadPoolExecutor(jobs) as hunters:
        for hunted in as_completed([hunters.submit(hunt, bug, on) for bug in bugs]):
            catches.append(hunted.result())
            write(str(catches[-1]), progress)
    return [catch if catch.caught or jobs == 1 else once_more(catch, bugs, on, progress) for catch in catches]


def once_more(missed: Catch, bugs: list[Bug], on: Ground, progress: TextIO) -> Catch:
    """Alone: transactions of other tests on the same server, though in other databases, hide some bugs."""
    [bug] = [bug for bug in bugs if bug.name == missed.name]
    catch = hunt(bug, on)
    write(str(catch), progress)
    return catch


def write(text: str, where: TextIO | None = None) -> None:
    print(text, file=where or sys.stdout, flush=True)


if __name__ == "__main__":
    sys.exit(main())
