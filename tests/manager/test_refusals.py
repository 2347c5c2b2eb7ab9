"""PostgreSQL refuses one job's outcome: that job takes the error path, and all others are settled."""

from __future__ import annotations

import pytest

from tests.manager.worker_helpers import serving
from tests.waiting import until

CHECK = "alter table tenure.history add constraint no_poison check (output is distinct from '\"poison\"')"
TRIGGER = """
create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not this one'{how}; end $$;
create trigger refuse before insert on tenure.history for each row when (new.output = '"poison"') execute function refuse();
"""
REFUSALS = {
    "a check (23514)": (CHECK, "no_poison"),
    "a trigger with a class of its own (23514)": (TRIGGER.format(how=" using errcode = '23514'"), "not this one"),
    "a trigger that simply raises (P0001)": (TRIGGER.format(how=""), "not this one"),
}


@pytest.mark.slow
@pytest.mark.parametrize("refusal", REFUSALS)
async def test_one_refused_outcome_does_not_harm_the_others_of_its_group(start, run_log, queue, refusal):
    statement, said = REFUSALS[refusal]
    queue.sql(statement)
    worker = start("--concurrency", "40")
    children = await serving(worker)
    good = queue.add("says", 20, word="fine")
    [bad] = queue.add("says", word="poison")
    good += queue.add("says", 18, word="fine")
    await until(lambda: len(run_log.entries()), is_=39)

    run_log.release()  # all end at once, and are sent together

    await queue.completed(*good)
    await until(lambda: queue.of(bad, "state"), is_=("dead_letter",))
    attempt, error = queue.of(bad, "attempt", "error")
    assert (attempt, run_log.runs(bad)) == (3, [3])
    assert "refused the outcome" in error
    assert said in error
    assert worker.children() == children


async def test_a_row_that_refuses_every_outcome_does_not_stop_the_settling_of_others(start, run_log, queue):
    worker = start("--concurrency", "20")
    await serving(worker)
    [bad] = queue.add("until_released")
    good = queue.add("until_released", 10)
    await until(lambda: len(run_log.entries()), is_=11)
    queue.sql(
        "create function hold() returns trigger language plpgsql as "
        "$$ begin raise exception 'this row is held' using errcode = '23514'; end $$"
    )
    queue.sql(
        f"create trigger hold before update or delete on tenure.jobs for each row when (old.id = '{bad}') execute function hold()"
    )

    run_log.release()

    await queue.completed(*good)
    await queue.completed(*queue.add("quick", 3))
