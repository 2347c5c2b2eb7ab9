"""What no statement may ever do, independent of the model: checked on two pictures of the database, before and after."""

from __future__ import annotations

from itertools import chain

from tenure.model.states import FIRST, HELD, State, may_move
from tests.properties.model.rows import MAX_CRASHES
from tests.properties.picture import COLUMN, TABLES, Picture, Row

ID, STATE, FENCE, CLAIM, WORKER = (COLUMN[name] for name in ("id", "state", "fence", "claim_id", "worker_id"))
ATTEMPT, CRASHES, KIND, KEY = (COLUMN[name] for name in ("attempt", "crashes", "kind", "key"))
OUTPUT = TABLES["history"].index("output")
CLAIMED_BY = TABLES["claims"].index("worker_id")
TERM = TABLES["leases"].index("term")


class Laws:
    def __init__(self) -> None:
        self._spent: set[tuple[str, str]] = set()
        """Jobs with claims that they once had and have lost."""

    def check(self, before: Picture, after: Picture, *, deleting: bool) -> None:
        both = after.jobs.keys() & after.history.keys()
        assert not both, f"both live and finished: {both}"
        self._check_moves(before, after)
        gone = (before.jobs.keys() | before.history.keys()) - after.jobs.keys() - after.history.keys()
        assert deleting or not gone, f"lost: {gone}"
        for name, row in before.leases.items():
            assert after.leases[name][TERM] >= row[TERM], f"the term of {name} went back"
        _check_holders(after)
        _check_keys(after)

    def _check_moves(self, before: Picture, after: Picture) -> None:
        for row in chain(after.jobs.values(), after.history.values()):
            old = before.jobs.get(row[ID]) or before.history.get(row[ID])
            if old is None:
                assert State(row[STATE]) in FIRST, f"began as {row[STATE]}"
                assert (row[FENCE], row[ATTEMPT], row[CLAIM]) == (0, 0, None), "began with a past"
            elif row != old:
                self._check_move(old, row, finished=row[ID] in before.history)

    def _check_move(self, old: Row, row: Row, *, finished: bool) -> None:
        if finished:
            assert old[OUTPUT] is None, "a result was changed"
            assert row[:OUTPUT] + row[OUTPUT + 1 :] == old[:OUTPUT] + old[OUTPUT + 1 :], "a finished job was changed"
            return
        assert row[STATE] == old[STATE] or may_move(State(old[STATE]), State(row[STATE])), f"{old[STATE]} -> {row[STATE]}"
        claimed = row[CLAIM] is not None and row[CLAIM] != old[CLAIM]
        assert row[FENCE] == old[FENCE] + claimed, f"fence {old[FENCE]} -> {row[FENCE]}, claimed: {claimed}"
        if claimed:
            assert (row[ID], row[CLAIM]) not in self._spent, "a claim id was used again"
        if old[CLAIM] is not None and row[CLAIM] != old[CLAIM]:
            self._spent.add((old[ID], old[CLAIM]))


def _check_holders(after: Picture) -> None:
    for row in after.jobs.values():
        held = row[STATE] in HELD
        assert held == (row[CLAIM] is not None) == (row[WORKER] is not None), f"half held: {row}"
        assert not held or row[WORKER] in after.workers, f"held by a worker without a row: {row}"
        assert row[CRASHES] < MAX_CRASHES or row[STATE] == State.DEAD_LETTER, f"not dead-lettered: {row}"
    for claim in after.claims.values():
        assert claim[CLAIMED_BY] in after.workers, f"a claim of a worker without a row: {claim}"


def _check_keys(after: Picture) -> None:
    """A live job with a key owns that key. This does not apply to dead letters."""
    for row in after.jobs.values():
        if row[KEY] is not None and row[STATE] != State.DEAD_LETTER:
            key = after.keys.get((row[KIND], row[KEY]))
            assert key is not None, f"its key is free: {row}"
            assert key[2] == row[ID], f"another job owns its key: {row}"
