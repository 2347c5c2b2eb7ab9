"""The invariants, grouped by subject. `RULES` checks them.

jobs.py          I1 I2 I3 I7 I14 I15   jobs from enqueue to end
runs.py          I4 I5 I6 I8 I13 I20   claims, fences, runs, attempts
claim_order.py   I9 I19 I21            order, limits, needless waits
schedules.py     I10 I22               planned times, promotion of due jobs
leaders.py       I11                   terms of leaders
transactions.py  I17 I18               rows that commit together with a job
record.py        I0 I23                the record itself, repaired history
chains.py        I24                   links of chains, jobs that wait for them
steps.py         I12                   steps of workflows
workflows.py     I25 I26               wake-ups and rollbacks of workflows
audit.py         I16                   the audit log of the web server
"""

from __future__ import annotations

from tenure.chaos.invariants.audit import EveryChangeAudited
from tenure.chaos.invariants.chains import ChainsEndOnce
from tenure.chaos.invariants.claim_order import ClaimOrder, LimitsKept, NoNeedlessWait
from tenure.chaos.invariants.jobs import AllWorkFinishes, NoJobLost, NoUnknownJob, OneOutcome, OnlyLegalMoves, RepliesAreTrue
from tenure.chaos.invariants.leaders import OneLeaderPerTerm
from tenure.chaos.invariants.record import HistoryRepaired, RecordIsComplete
from tenure.chaos.invariants.rule import Rule
from tenure.chaos.invariants.runs import (
    AttemptsCounted,
    LastClaimSettles,
    NoJobAbandoned,
    NoMoreRunsThanSlots,
    OneRunPerClaim,
    StaleHolderWritesNothing,
)
from tenure.chaos.invariants.schedules import DueJobsPromoted, EachTickOnce
from tenure.chaos.invariants.steps import StepsRecordedOnce
from tenure.chaos.invariants.transactions import EffectsOnce, JobsCommitWithCaller
from tenure.chaos.invariants.workflows import FailedWorkflowsUndone, NoWakeUpLost
from tenure.chaos.verdict import Invariant

__all__ = ["INVARIANTS", "RULES"]

RULES: tuple[type[Rule], ...] = (
    RecordIsComplete, NoJobLost, NoUnknownJob, OneOutcome, LastClaimSettles, OneRunPerClaim, StaleHolderWritesNothing,
    OnlyLegalMoves, NoMoreRunsThanSlots, ClaimOrder, EachTickOnce, OneLeaderPerTerm, AttemptsCounted, AllWorkFinishes,
    RepliesAreTrue, EffectsOnce, JobsCommitWithCaller, LimitsKept, NoJobAbandoned, NoNeedlessWait, DueJobsPromoted,
    HistoryRepaired, ChainsEndOnce, StepsRecordedOnce, NoWakeUpLost, FailedWorkflowsUndone, EveryChangeAudited,
)  # fmt: skip

INVARIANTS: tuple[Invariant, ...] = tuple(
    sorted((rule.invariant for rule in RULES), key=lambda invariant: int(invariant.number[1:]))
)
