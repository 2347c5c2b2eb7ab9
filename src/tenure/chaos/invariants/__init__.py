"""The invariants, grouped by subject. `RULES` checks them.

record.py       I0 I16 I23                   the record itself, repaired history, the audit log of the web server
jobs.py         I1 I2 I3 I7 I14 I15 I17 I18   jobs from enqueue to end, rows that commit together with a job
runs.py         I4 I5 I6 I8 I13 I20           claims, fences, runs, attempts
claim_order.py  I9 I19 I21                    order, limits, needless waits
duties.py       I10 I11 I22                   terms of leaders, planned times, promotion of due jobs
workflows.py    I12 I24 I25 I26               links of chains, steps, wake-ups and rollbacks of workflows

`rule.py` has what all rules have in common. They read `traces.py` (of one job) and `lookups.py` (of clients, schedules, workers
and faults).
"""

from __future__ import annotations

from tenure.chaos.invariants.claim_order import ClaimOrder, LimitsKept, NoNeedlessWait
from tenure.chaos.invariants.duties import DueJobsPromoted, EachTickOnce, OneLeaderPerTerm
from tenure.chaos.invariants.jobs import (
    AllWorkFinishes,
    EffectsOnce,
    JobsCommitWithCaller,
    NoJobLost,
    NoUnknownJob,
    OneOutcome,
    OnlyLegalMoves,
    RepliesAreTrue,
)
from tenure.chaos.invariants.record import EveryChangeAudited, HistoryRepaired, RecordIsComplete
from tenure.chaos.invariants.rule import Rule
from tenure.chaos.invariants.runs import (
    AttemptsCounted,
    LastClaimSettles,
    NoJobAbandoned,
    NoMoreRunsThanSlots,
    OneRunPerClaim,
    StaleHolderWritesNothing,
)
from tenure.chaos.invariants.workflows import ChainsEndOnce, FailedWorkflowsUndone, NoWakeUpLost, StepsRecordedOnce
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
