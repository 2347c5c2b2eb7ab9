"""Which scripts are played against each other, and where they begin."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple


class Triple(NamedTuple):
    start_state: str
    names: tuple[str, ...]
    schedules: int | None = None
    """How many there must be."""

    def __str__(self) -> str:
        return f"{self.start_state}: {' | '.join(self.names)}"


# Each is here for a promise that only an unlucky order could break.
CHOSEN = [
    # Who claims while its worker is condemned holds nothing that nobody gives back.
    Triple("waiting", ("W1 claims", "S1 buries W1", "W2 works"), 3150),
    Triple("waiting", ("S2 renews W2", "W2 works", "cancel"), 420),
    Triple("waiting", ("S2 renews W2", "W2 claims", "W1 works"), 420),
    Triple("waiting", ("W1 works", "W2 claims", "delete"), 420),
    # One outcome, by the last claim: the run, its supervisor, another worker and people want the job at once.
    Triple("held", ("C1 settles", "S1 buries W1", "W2 works"), 3150),
    Triple("held", ("C1 writes and settles", "S1 buries W1", "cancel"), 1260),
    Triple("held", ("C1 hands in L, settles", "S1 buries W1", "delete by force"), 1260),
    Triple("held", ("C1 hands in K", "cancel", "C1 fails"), 90),
    Triple("held", ("C1 tells", "S1 stops W1", "delete by force"), 420),
    Triple("held", ("C1 settles and asks", "C1 was not heard", "cancel if pending"), 420),
    Triple("held", ("C1 was not heard", "C1 requeues", "W1 claims"), 90),
    Triple("passed_on", ("C1 settles", "C2 fails", "cancel"), 90),
    Triple("passed_on", ("C1 fails", "C2 settles", "C1 tells"), 90),
    Triple("condemned", ("W1 is emptied", "all are emptied", "C1 tells"), 90),
    Triple("condemned", ("all are emptied", "C1 requeues", "W2 works"), 420),
    Triple("suspect", ("C1 requeues", "S1 buries W1", "replay"), 420),
    # Held by a worker that has no row: found, whatever its run and other workers do.
    Triple("unknown", ("H1 finds the unknown", "C1 settles", "W2 claims"), 420),
    Triple("unknown", ("H1 finds the unknown", "C1 requeues", "cancel"), 420),
    Triple("unknown", ("H1 finds the unknown", "all are emptied", "C1 beats"), 420),
    # Held under a claim that has no row: found as well, and nothing is settled before.
    Triple("unclaimed", ("H1 finds the unknown", "C1 settles", "W2 claims"), 420),
    Triple("unclaimed", ("H1 finds the unknown", "C1 requeues", "cancel"), 420),
    Triple("unclaimed", ("H1 finds the unknown", "C1 beats"), 15),
    # The row of a claim stays for as long as a job is held under it.
    Triple("held", ("W1 forgets", "C1 settles", "cancel"), 90),
    Triple("held", ("W1 forgets", "C1 requeues", "W1 claims"), 90),
    Triple("held", ("W1 forgets", "C1 settles", "S1 buries W1"), 420),
    Triple("waiting", ("W1 forgets", "W1 claims", "S1 buries W1"), 420),
    # Never more than the limit, whoever claims, settles and comes back.
    Triple("limited", ("W1 claims limited", "W2 claims limited", "cancel"), 560),
    Triple("limited_held", ("C1 settles", "W1 claims limited", "W2 claims limited"), 560),
    Triple("limited_held", ("S1 buries W1", "C1 requeues", "W2 claims limited"), 1260),
    # A worker that lives after all, and a job's own lease.
    Triple("overdue", ("S1 renews W1", "H1 reaps", "C1 settles"), 420),
    Triple("overdue", ("S1 renews W1", "H1 reaps", "W2 claims"), 420),
    Triple("leased", ("C1 beats", "late, H1 expires", "C1 settles"), 210),
    Triple("leased", ("C1 beats", "late, H1 expires", "W2 works"), 1260),
    Triple("late_short_term", ("H1 expires", "late, H2 expires", "C1 beats"), 756),
    # Nobody leads beside another.
    Triple("short_term", ("H1 promotes", "late, H2 leads", "H3 runs"), 756),
    Triple("short_term", ("H1 leaves", "H2 leads", "H1 promotes"), 420),
    Triple("no_leader", ("H1 leaves", "H2 leads", "H3 runs"), 420),
    # A job becomes pending once.
    Triple("due", ("H1 promotes", "retry", "W2 works"), 420),
    Triple("due", ("H1 promotes", "retry", "cancel"), 90),
    Triple("dead", ("replay", "retry", "W2 fails"), 420),
    Triple("dead", ("replay", "delete", "cancel"), 90),
    Triple("done", ("run again", "delete", "W2 claims"), 90),
    # Accepted once, whatever became of the first call; one job for a key.
    Triple("empty", ("A with k", "A with k again", "W2 works on A"), 420),
    Triple("empty", ("A with k, lost", "A with k again", "B with k"), 90),
    Triple("empty", ("A", "A again", "W2 works on A"), 420),
    Triple("keyed", ("delete", "B with k", "A with k again"), 90),
    Triple("keyed_held", ("C1 settles", "B with k", "H1 cleans keys"), 90),
    Triple("keyed_held", ("cancel", "B with k", "A with k"), 90),
    Triple("keyed_done", ("H1 cleans keys", "B with k", "A with k"), 90),
    Triple("keyed_dead", ("replay", "B with k", "retry"), 90),
    Triple("keyed_dead", ("replay", "B with k", "H1 cleans keys"), 90),
    Triple("done", ("run again", "run again as L", "W2 claims"), 90),
    # Rows that several statements need, of more than one queue.
    Triple("crowded_condemned", ("W1 is emptied", "W2 is emptied", "C1 requeues all"), 90),
    Triple("crowded", ("S1 buries W1", "C1 requeues all", "C2 settles all"), 420),
]

PEOPLE = ("cancel", "delete", "retry")
C1 = ("C1 settles", "C1 fails", "C1 requeues", "C1 beats", "C1 was not heard", "C1 hands in K")
IN_TRANSACTION = ("C1 writes and settles", "C1 hands in L, settles")

# Every three of a line are played against each other.
FIELDS: dict[str, tuple[str, ...]] = {
    "waiting": (
        "W1 claims",
        "W1 forgets",
        "W2 works",
        "W2 loses its answer",
        "S1 buries W1",
        "S2 renews W2",
        "cancel if pending",
        *PEOPLE,
    ),
    "held": (*C1, *IN_TRANSACTION, "W1 forgets", "S1 buries W1", "S1 renews W1", "W2 works", "cancel", "delete by force"),
    "unknown": (*C1, "H1 finds the unknown", "all are emptied", "W2 works", "cancel", "delete by force"),
    "limited": ("W1 claims limited", "W2 claims limited", "S1 buries W1", "S2 renews W2", "cancel if pending", *PEOPLE),
    "limited_held": (*C1[:3], "W1 claims limited", "W2 claims limited", "S1 buries W1", "cancel", "delete by force"),
    "passed_on": (*C1, *IN_TRANSACTION, "C1 tells", "C2 settles", "C2 fails", "C2 tells", "cancel", "delete by force"),
    "condemned": (
        "W1 forgets",
        "W1 is emptied",
        "all are emptied",
        "S1 renews W1",
        "W1 claims",
        "W2 claims",
        *C1,
        *IN_TRANSACTION,
        "cancel",
    ),
    "overdue": (
        "S1 renews W1",
        "H1 reaps",
        "W1 claims",
        "W2 works",
        "C1 settles",
        "C1 tells",
        "C1 requeues",
        "cancel",
        "H1 leaves",
    ),
    "leased": (
        "C1 beats",
        "C1 settles",
        "C1 fails",
        "late, H1 expires",
        "H1 reaps",
        "W2 works",
        "S1 buries W1",
        "cancel",
        "delete by force",
    ),
    "late": (
        "C1 beats",
        "C1 settles",
        "C1 fails",
        "H1 expires",
        "W2 works",
        "S1 buries W1",
        "cancel",
        "delete by force",
        "H1 leaves",
    ),
    "late_short_term": ("C1 beats", "H1 expires", "late, H2 expires", "H1 leaves", "H3 runs"),
    "short_term": (
        "H1 promotes",
        "H1 leaves",
        "late, H2 leads",
        "H2 leads",
        "H3 runs",
        "retry",
        "cancel",
        "W2 claims",
        "time passes",
    ),
    "no_leader": ("H1 promotes", "H1 leaves", "H2 leads", "H3 runs", "retry", "cancel", "W2 claims"),
    "due": ("H1 promotes", "W2 works", "W2 fails", *PEOPLE),
    "dead": ("replay", "W2 works", "W2 fails", *PEOPLE),
    "done": ("run again", "delete", "W2 works", "cancel", "C1 settles and asks", "retry"),
    "empty": ("A with k", "A with k again", "A with k, lost", "B with k", "D with k for ever", "W2 works on A", "H1 cleans keys"),
    "keyed": ("A with k", "A with k again", "D with k for ever", "W2 works", "H1 cleans keys", "cancel", "delete"),
    "keyed_held": (
        "A with k",
        "A with k again",
        "D with k for ever",
        "C1 settles",
        "S1 buries W1",
        "H1 cleans keys",
        "cancel",
        "delete by force",
    ),
    "keyed_done": ("A with k", "A with k again", "D with k for ever", "W2 works on A", "H1 cleans keys", "run again", "delete"),
    "keyed_dead": ("replay", "retry", "B with k", "A with k again", "D with k for ever", "H1 cleans keys", "cancel", "delete"),
    "crowded": (
        "S1 buries W1",
        "S2 buries W2",
        "C1 requeues all",
        "C1 settles all",
        "C2 settles all",
        "all are emptied",
        "C1 was not heard",
    ),
}

# Four steps each, and more.
LONG = [
    Triple("limited", ("W1 claims limited", "S1 buries W1", "W2 claims limited")),
    Triple("waiting", ("W1 works", "S1 buries W1", "W2 works")),
    Triple("waiting", ("W1 works and forgets", "S1 buries W1", "W2 works")),
    Triple("waiting", ("W1 works", "S2 buries W2", "W2 fails")),
    Triple("waiting", ("W2 loses its answer", "W1 works", "cancel, ask again")),
    Triple("held", ("C1 settles and asks", "S1 buries W1", "W2 works")),
    Triple("held", ("C1 writes and settles", "S1 buries W1", "W2 works")),
    Triple("held", ("C1 settles and asks", "S1 stops W1", "cancel, ask again")),
    Triple("overdue", ("S1 renews W1, twice", "H1 reaps", "W2 works")),
    Triple("overdue", ("C1 settles and asks", "H1 reaps", "cancel, ask again")),
    Triple("leased", ("C1 beats and settles", "late, H1 expires", "W2 works")),
    Triple("leased", ("C1 beats and settles", "late, H1 expires", "S1 buries W1")),
    Triple("short_term", ("H1 promotes, twice", "late, H2 leads", "retry")),
    Triple("dead", ("replay, then cancel", "retry, or run again", "W2 works")),
    Triple("crowded", ("S1 buries W1", "S2 buries W2", "cancel, ask again")),
]


def campaign() -> Iterator[Triple]:
    for start_state, names in FIELDS.items():
        for three in combinations(names, 3):
            yield Triple(start_state, three)
    yield from LONG
