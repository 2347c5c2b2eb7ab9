"""What each session does, step by step. Each statement is in a transaction whose commit is a step of its own."""

from __future__ import annotations

from tests.interleavings.start_states import LATER, SHORT
from tests.interleavings.steps import asking, caretaking, leading, limited, runs
from tests.interleavings.steps.leading import Term
from tests.interleavings.steps.step import COMMIT, COMMIT_IF_SETTLED, ROLLBACK, Script, Step, Wait


def committed(*steps: Step) -> Script:
    """Each in a transaction of its own."""
    return tuple(part for step in steps for part in (step, COMMIT))


H1, H2 = Term("H1", 1), Term("H2", 2)
TIME = Wait(LATER)

SCRIPTS: dict[str, Script] = {
    # A worker that looks for work
    "W1 claims": committed(runs.claim("W1", "C3")),
    "W2 claims": committed(runs.claim("W2", "C4")),
    "W1 works": committed(runs.claim("W1", "C3"), runs.finish("C3")),
    "W2 works": committed(runs.claim("W2", "C4"), runs.finish("C4")),
    "W2 works on A": committed(runs.claim("W2", "C4"), runs.finish("C4", "A")),
    "W2 fails": committed(runs.claim("W2", "C4"), runs.move("C4", "retry", delay=0)),
    "W2 claims and disowns": committed(runs.claim("W2", "C5"), runs.disown("W2", "C5")),
    "W1 forgets claims": committed(runs.forget("W1")),
    "W1 works, forgets claims": committed(runs.claim("W1", "C3"), runs.finish("C3"), runs.forget("W1")),
    # A worker that looks for work under a limit: the lock and the claim are one transaction
    "W1 claims limited": (limited.lock("W1"), limited.claim("W1", "C3"), COMMIT),
    "W2 claims limited": (limited.lock("W2"), limited.claim("W2", "C4"), COMMIT),
    # The run that holds J at the beginning
    "C1 settles": committed(runs.finish("C1")),
    "C1 settles and checks": committed(runs.finish("C1"), runs.find_settled("C1")),
    "C1 ends as failed": committed(runs.finish("C1", state="failed")),
    "C1 fails": committed(runs.move("C1", "retry", delay=0)),
    "C1 dead-letters": committed(runs.move("C1", "dead_letter")),
    "C1 requeues": committed(runs.requeue("C1")),
    "C1 requeues all": committed(runs.requeue("C1", "K", "J")),
    "C1 settles all": committed(runs.finish("C1", "K", "J")),
    "C1 sends heartbeat": committed(runs.note("C1", lease=SHORT)),
    "C1 reports progress": committed(runs.note("C1", percent=50)),
    "C1 sends heartbeat, settles": committed(runs.note("C1", lease=SHORT), runs.finish("C1")),
    "W1 disowns C1": committed(runs.disown("W1", "C1")),
    "C1 writes and settles": (runs.effect("C1"), runs.finish("C1"), COMMIT_IF_SETTLED),
    "C1 writes and fails": (runs.effect("C1"), ROLLBACK),
    "C1 enqueues K": committed(asking.child("C1", "K")),
    "C1 enqueues L, settles": (asking.child("C1", "L", borrowed=True), runs.finish("C1"), COMMIT_IF_SETTLED),
    # Another run that holds it
    "C2 settles": committed(runs.finish("C2")),
    "C2 fails": committed(runs.move("C2", "retry", delay=0)),
    "C2 reports progress": committed(runs.note("C2", percent=70)),
    "C2 settles all": committed(runs.finish("C2", "L", "M")),
    # Supervisors and reapers
    "S1 reaps W1": committed(caretaking.condemn("W1"), caretaking.return_jobs("W1")),
    "S1 stops W1": committed(caretaking.condemn("W1", "stopped"), caretaking.return_jobs("W1")),
    "S2 reaps W2": committed(caretaking.condemn("W2"), caretaking.return_jobs("W2")),
    "S1 condemns W1": committed(caretaking.condemn("W1")),
    "S1 renews W1": committed(caretaking.renew("W1")),
    "S2 renews W2": committed(caretaking.renew("W2")),
    "jobs of W1 are requeued": committed(caretaking.return_jobs("W1")),
    "jobs of W2 are requeued": committed(caretaking.return_jobs("W2")),
    "jobs of dead workers are requeued": committed(caretaking.return_jobs()),
    "H1 reaps": committed(leading.condemn_expired(H1), caretaking.return_jobs()),
    "H1 expires jobs": committed(leading.expire_jobs(H1)),
    "S1 renews W1, twice": committed(caretaking.renew("W1"), caretaking.renew("W1")),
    "H1 reaps unknown workers": committed(leading.condemn_unknown(H1), caretaking.return_jobs()),
    "time passes, H1 expires jobs": (TIME, *committed(leading.expire_jobs(H1))),
    # Leaders
    "H1 promotes": committed(leading.promote(H1)),
    "H1 promotes, twice": committed(leading.promote(H1), leading.promote(H1)),
    "H1 resigns": committed(leading.release(H1)),
    "H1 cleans keys": committed(leading.clean_keys(H1)),
    "H2 asks to lead": committed(leading.acquire("H2")),
    "H2 leads": committed(leading.acquire("H2"), leading.promote(H2)),
    "time passes, H2 leads": (TIME, *committed(leading.acquire("H2"), leading.promote(H2))),
    "time passes, H2 expires jobs": (TIME, *committed(leading.acquire("H2"), leading.expire_jobs(H2))),
    "H3 asks to lead": committed(leading.acquire("H3")),
    "time passes": (TIME,),
    # People
    "cancel": committed(asking.cancel()),
    "cancel, ask again": committed(asking.cancel(), asking.cancel()),
    "cancel if pending": committed(asking.cancel(states=("pending",))),
    "delete": committed(asking.delete()),
    "delete by force": committed(asking.delete(force=True)),
    "retry": committed(asking.retry()),
    "replay": committed(asking.replay()),
    "replay, then cancel": committed(asking.replay(), asking.cancel()),
    "retry, or run again": committed(asking.retry(), asking.retry_finished("K")),
    "run again": committed(asking.retry_finished("K")),
    "run again as L": committed(asking.retry_finished("L")),
    # Programs
    "A": committed(asking.enqueue("A")),
    "A, rolled back": (asking.enqueue("A"), ROLLBACK),
    "A again": committed(asking.enqueue("A", again=True)),
    "A with k": committed(asking.enqueue("A", "k")),
    "A with k, rolled back": (asking.enqueue("A", "k"), ROLLBACK),
    "A with k again": committed(asking.enqueue("A", "k", again=True)),
    "B with k": committed(asking.enqueue("B", "k")),
    "D with k forever": committed(asking.enqueue("D", "k", scope="forever")),
}
