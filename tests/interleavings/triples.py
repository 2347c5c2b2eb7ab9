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


# Each is here for a guarantee that only certain orders could break.
CHOSEN = [
    # A claim that runs while its worker is condemned holds no job that is never requeued.
    Triple("waiting", ("W1 claims", "S1 reaps W1", "W2 works"), 3150),
    Triple("waiting", ("S2 renews W2", "W2 works", "cancel"), 420),
    Triple("waiting", ("S2 renews W2", "W2 claims", "W1 works"), 420),
    Triple("waiting", ("W1 works", "W2 claims", "delete"), 420),
    # One outcome, by the last claim: the run, its supervisor, another worker and people want the job at once.
    Triple("held", ("C1 settles", "S1 reaps W1", "W2 works"), 3150),
    Triple("held", ("C1 writes and settles", "S1 reaps W1", "cancel"), 1260),
    Triple("held", ("C1 enqueues L, settles", "S1 reaps W1", "delete by force"), 1260),
    Triple("held", ("C1 enqueues K", "cancel", "C1 fails"), 90),
    Triple("held", ("C1 reports progress", "S1 stops W1", "delete by force"), 420),
    Triple("held", ("C1 settles and checks", "W1 disowns C1", "cancel if pending"), 420),
    Triple("held", ("W1 disowns C1", "C1 requeues", "W1 claims"), 90),
    Triple("passed_on", ("C1 settles", "C2 fails", "cancel"), 90),
    Triple("passed_on", ("C1 fails", "C2 settles", "C1 reports progress"), 90),
    Triple("condemned", ("jobs of W1 are requeued", "jobs of dead workers are requeued", "C1 reports progress"), 90),
    Triple("condemned", ("jobs of dead workers are requeued", "C1 requeues", "W2 works"), 420),
    Triple("suspect", ("C1 requeues", "S1 reaps W1", "replay"), 420),
    # Held by a worker that has no row: requeued, regardless of what its run and other workers do.
    Triple("unknown", ("H1 reaps unknown workers", "C1 settles", "W2 claims"), 420),
    Triple("unknown", ("H1 reaps unknown workers", "C1 requeues", "cancel"), 420),
    Triple("unknown", ("H1 reaps unknown workers", "jobs of dead workers are requeued", "C1 sends heartbeat"), 420),
    # Held under a claim that has no row: requeued as well, and not settled before.
    Triple("unclaimed", ("H1 reaps unknown workers", "C1 settles", "W2 claims"), 420),
    Triple("unclaimed", ("H1 reaps unknown workers", "C1 requeues", "cancel"), 420),
    Triple("unclaimed", ("H1 reaps unknown workers", "C1 sends heartbeat"), 15),
    # The row of a claim stays for as long as a job is held under it.
    Triple("held", ("W1 forgets claims", "C1 settles", "cancel"), 90),
    Triple("held", ("W1 forgets claims", "C1 requeues", "W1 claims"), 90),
    Triple("held", ("W1 forgets claims", "C1 settles", "S1 reaps W1"), 420),
    Triple("waiting", ("W1 forgets claims", "W1 claims", "S1 reaps W1"), 420),
    # Never more than the limit, in any order of claims, settlements and requeues.
    Triple("limited", ("W1 claims limited", "W2 claims limited", "cancel"), 560),
    Triple("limited_held", ("C1 settles", "W1 claims limited", "W2 claims limited"), 560),
    Triple("limited_held", ("S1 reaps W1", "C1 requeues", "W2 claims limited"), 1260),
    # A worker that is renewed although it was overdue, and a job's own lease.
    Triple("overdue", ("S1 renews W1", "H1 reaps", "C1 settles"), 420),
    Triple("overdue", ("S1 renews W1", "H1 reaps", "W2 claims"), 420),
    Triple("leased", ("C1 sends heartbeat", "time passes, H1 expires jobs", "C1 settles"), 210),
    Triple("leased", ("C1 sends heartbeat", "time passes, H1 expires jobs", "W2 works"), 1260),
    Triple("late_short_term", ("H1 expires jobs", "time passes, H2 expires jobs", "C1 sends heartbeat"), 756),
    # There is never more than one leader.
    Triple("short_term", ("H1 promotes", "time passes, H2 leads", "H3 asks to lead"), 756),
    Triple("short_term", ("H1 resigns", "H2 leads", "H1 promotes"), 420),
    Triple("no_leader", ("H1 resigns", "H2 leads", "H3 asks to lead"), 420),
    # A job becomes pending once.
    Triple("due", ("H1 promotes", "retry", "W2 works"), 420),
    Triple("due", ("H1 promotes", "retry", "cancel"), 90),
    Triple("dead", ("replay", "retry", "W2 fails"), 420),
    Triple("dead", ("replay", "delete", "cancel"), 90),
    Triple("done", ("run again", "delete", "W2 claims"), 90),
    # Accepted once, whether or not the first call committed; one job per key.
    Triple("empty", ("A with k", "A with k again", "W2 works on A"), 420),
    Triple("empty", ("A with k, rolled back", "A with k again", "B with k"), 90),
    Triple("empty", ("A", "A again", "W2 works on A"), 420),
    Triple("keyed", ("delete", "B with k", "A with k again"), 90),
    Triple("keyed_held", ("C1 settles", "B with k", "H1 cleans keys"), 90),
    Triple("keyed_held", ("cancel", "B with k", "A with k"), 90),
    Triple("keyed_done", ("H1 cleans keys", "B with k", "A with k"), 90),
    Triple("keyed_dead", ("replay", "B with k", "retry"), 90),
    Triple("keyed_dead", ("replay", "B with k", "H1 cleans keys"), 90),
    Triple("done", ("run again", "run again as L", "W2 claims"), 90),
    # Rows that several statements need, of more than one queue.
    Triple("crowded_condemned", ("jobs of W1 are requeued", "jobs of W2 are requeued", "C1 requeues all"), 90),
    Triple("crowded", ("S1 reaps W1", "C1 requeues all", "C2 settles all"), 420),
]

PEOPLE = ("cancel", "delete", "retry")
C1 = ("C1 settles", "C1 fails", "C1 requeues", "C1 sends heartbeat", "W1 disowns C1", "C1 enqueues K")
IN_TRANSACTION = ("C1 writes and settles", "C1 enqueues L, settles")

# All combinations of three scripts of an entry are played against each other.
FIELDS: dict[str, tuple[str, ...]] = {
    "waiting": (
        "W1 claims",
        "W1 forgets claims",
        "W2 works",
        "W2 claims and disowns",
        "S1 reaps W1",
        "S2 renews W2",
        "cancel if pending",
        *PEOPLE,
    ),
    "held": (*C1, *IN_TRANSACTION, "W1 forgets claims", "S1 reaps W1", "S1 renews W1", "W2 works", "cancel", "delete by force"),
    "unknown": (*C1, "H1 reaps unknown workers", "jobs of dead workers are requeued", "W2 works", "cancel", "delete by force"),
    "limited": ("W1 claims limited", "W2 claims limited", "S1 reaps W1", "S2 renews W2", "cancel if pending", *PEOPLE),
    "limited_held": (*C1[:3], "W1 claims limited", "W2 claims limited", "S1 reaps W1", "cancel", "delete by force"),
    "passed_on": (
        *C1,
        *IN_TRANSACTION,
        "C1 reports progress",
        "C2 settles",
        "C2 fails",
        "C2 reports progress",
        "cancel",
        "delete by force",
    ),
    "condemned": (
        "W1 forgets claims",
        "jobs of W1 are requeued",
        "jobs of dead workers are requeued",
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
        "C1 reports progress",
        "C1 requeues",
        "cancel",
        "H1 resigns",
    ),
    "leased": (
        "C1 sends heartbeat",
        "C1 settles",
        "C1 fails",
        "time passes, H1 expires jobs",
        "H1 reaps",
        "W2 works",
        "S1 reaps W1",
        "cancel",
        "delete by force",
    ),
    "late": (
        "C1 sends heartbeat",
        "C1 settles",
        "C1 fails",
        "H1 expires jobs",
        "W2 works",
        "S1 reaps W1",
        "cancel",
        "delete by force",
        "H1 resigns",
    ),
    "late_short_term": ("C1 sends heartbeat", "H1 expires jobs", "time passes, H2 expires jobs", "H1 resigns", "H3 asks to lead"),
    "short_term": (
        "H1 promotes",
        "H1 resigns",
        "time passes, H2 leads",
        "H2 leads",
        "H3 asks to lead",
        "retry",
        "cancel",
        "W2 claims",
        "time passes",
    ),
    "no_leader": ("H1 promotes", "H1 resigns", "H2 leads", "H3 asks to lead", "retry", "cancel", "W2 claims"),
    "due": ("H1 promotes", "W2 works", "W2 fails", *PEOPLE),
    "dead": ("replay", "W2 works", "W2 fails", *PEOPLE),
    "done": ("run again", "delete", "W2 works", "cancel", "C1 settles and checks", "retry"),
    "empty": (
        "A with k",
        "A with k again",
        "A with k, rolled back",
        "B with k",
        "D with k forever",
        "W2 works on A",
        "H1 cleans keys",
    ),
    "keyed": ("A with k", "A with k again", "D with k forever", "W2 works", "H1 cleans keys", "cancel", "delete"),
    "keyed_held": (
        "A with k",
        "A with k again",
        "D with k forever",
        "C1 settles",
        "S1 reaps W1",
        "H1 cleans keys",
        "cancel",
        "delete by force",
    ),
    "keyed_done": ("A with k", "A with k again", "D with k forever", "W2 works on A", "H1 cleans keys", "run again", "delete"),
    "keyed_dead": ("replay", "retry", "B with k", "A with k again", "D with k forever", "H1 cleans keys", "cancel", "delete"),
    "crowded": (
        "S1 reaps W1",
        "S2 reaps W2",
        "C1 requeues all",
        "C1 settles all",
        "C2 settles all",
        "jobs of dead workers are requeued",
        "W1 disowns C1",
    ),
}

# Four steps each, and more.
LONG = [
    Triple("limited", ("W1 claims limited", "S1 reaps W1", "W2 claims limited")),
    Triple("waiting", ("W1 works", "S1 reaps W1", "W2 works")),
    Triple("waiting", ("W1 works, forgets claims", "S1 reaps W1", "W2 works")),
    Triple("waiting", ("W1 works", "S2 reaps W2", "W2 fails")),
    Triple("waiting", ("W2 claims and disowns", "W1 works", "cancel, ask again")),
    Triple("held", ("C1 settles and checks", "S1 reaps W1", "W2 works")),
    Triple("held", ("C1 writes and settles", "S1 reaps W1", "W2 works")),
    Triple("held", ("C1 settles and checks", "S1 stops W1", "cancel, ask again")),
    Triple("overdue", ("S1 renews W1, twice", "H1 reaps", "W2 works")),
    Triple("overdue", ("C1 settles and checks", "H1 reaps", "cancel, ask again")),
    Triple("leased", ("C1 sends heartbeat, settles", "time passes, H1 expires jobs", "W2 works")),
    Triple("leased", ("C1 sends heartbeat, settles", "time passes, H1 expires jobs", "S1 reaps W1")),
    Triple("short_term", ("H1 promotes, twice", "time passes, H2 leads", "retry")),
    Triple("dead", ("replay, then cancel", "retry, or run again", "W2 works")),
    Triple("crowded", ("S1 reaps W1", "S2 reaps W2", "cancel, ask again")),
]


def campaign() -> Iterator[Triple]:
    for start_state, names in FIELDS.items():
        for three in combinations(names, 3):
            yield Triple(start_state, three)
    yield from LONG
