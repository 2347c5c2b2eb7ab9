"""What the changes up to now show of the steps of one workflow. Kept small: a campaign has hundreds of thousands of steps."""

from __future__ import annotations

from sys import intern

from tenure.chaos.ledger import StepChange

ENDED = frozenset({"done", "failed"})
"""The states in which the row of a step stays as it is."""

WITH_VALUE = frozenset({"step", "transaction", "undo"})
"""Steps whose value is made by a function, which writes down what it made."""

STATUS = "status"
"""What a workflow reports about itself is stored as a step, and is not one."""


class StepTrace:
    __slots__ = ("fence", "made", "number", "state", "value", "what")

    def __init__(self, change: StepChange) -> None:
        self.number = change.number
        self.what = intern(change.what)
        self.state = change.state and intern(change.state)
        self.fence = change.fence
        self.value = change.output if isinstance(change.output, str) else ""
        self.made = False
        """The run that recorded it wrote that its step made this value."""

    @property
    def done(self) -> bool:
        return self.state == "done"

    @property
    def has_value(self) -> bool:
        return self.done and self.what in WITH_VALUE


StepTraces = dict[str, StepTrace]
"""The steps of one workflow, by their names."""


def apply_change(steps: StepTraces, change: StepChange, *, deleted: bool) -> None:
    """`deleted`: the workflow itself was deleted. What it had recorded is kept, to be compared with what its runs saw."""
    if change.what == STATUS:
        return
    if change.state is not None:
        steps[intern(change.step)] = StepTrace(change)
    elif not deleted:
        steps.pop(change.step, None)
