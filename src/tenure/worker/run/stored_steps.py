"""Which steps a run has stored. Imports no driver: `import tenure` needs it."""

from __future__ import annotations

from collections.abc import Collection

from tenure.model.errors import LeaseLost
from tenure.worker.run.run import Run


class StepsLost(LeaseLost):
    """Steps that a run has stored are gone: PostgreSQL has failed over to a standby that did not have them. The run holds its
    job, but must not continue: the workflow begins again with what is recorded."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.job_uuid, "steps_lost")


def confirm_stored(run: Run, checked: Collection[str], name: str) -> None:
    """A step is stored, by a statement that has found those that were `checked`. Of what it has written, one is enough to check:
    a transaction is replicated as a whole. What other statements have stored meanwhile is still to be checked."""
    run.stored_steps = (*(one for one in run.stored_steps if one not in checked and one != name), name)
