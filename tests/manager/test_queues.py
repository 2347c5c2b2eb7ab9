"""What a worker leaves alone: kinds it does not know, capabilities it lacks, queues that are paused."""

from __future__ import annotations

from tests.manager.worker_helpers import serving
from tests.waiting import until


async def test_unknown_kinds_are_left_for_others_and_named_once_while_known_ones_behind_them_run(start, queue):
    unknown = queue.add("from_another_app", 30)
    known = queue.add("quick", 20)
    worker = start()

    await queue.completed(*known)
    await queue.completed(*queue.add("quick", 20))

    assert queue.states(*unknown) == {"pending": 30}
    assert worker.said.count("which this worker does not know") == 1
    assert "'from_another_app'" in worker.said
    assert {queue.of(job, "attempt", "fence") for job in unknown} == {(0, 0)}


async def test_a_job_waits_for_a_worker_with_its_capability(start, run_log, queue):
    [job] = queue.add("needs_gpu")
    await serving(start())
    await queue.completed(*queue.add("quick", 5))
    assert queue.of(job, "state", "fence") == ("pending", 0)

    able = start("--capabilities", "gpu,smtp")

    await queue.completed(job)
    [run] = run_log.entries(job=job)
    assert run["pid"] in able.children()


async def test_a_paused_queue_is_not_claimed_until_it_is_resumed(start, run_log, queue):
    queue.sql("insert into tenure.queues (name, paused_at) values ('other', now())")
    [waiting] = queue.add("elsewhere", queue="other")
    await serving(start())
    await queue.completed(*queue.add("quick", 5))
    assert (queue.of(waiting, "state"), run_log.runs(waiting)) == (("pending",), [0])

    queue.sql("update tenure.queues set paused_at = null where name = 'other'")

    await queue.completed(waiting)


async def test_a_queue_paused_while_its_jobs_run_lets_them_end(start, run_log, queue):
    await serving(start("--concurrency", "2"))
    ids = queue.add("until_released", 4)
    await until(lambda: len(run_log.entries()), is_=2)

    queue.sql(
        "insert into tenure.queues (name, paused_at) values ('default', now()) on conflict (name) do update set paused_at = now()"
    )
    run_log.release()
    await until(lambda: queue.states(*ids), is_={"completed": 2, "pending": 2})
    queue.sql("update tenure.queues set paused_at = null")

    await queue.completed(*ids)


async def test_only_the_named_queues_are_served(start, queue):
    [there] = queue.add("elsewhere", queue="other")
    await serving(start("--queues", "default"))
    await queue.completed(*queue.add("quick"))
    assert queue.of(there, "state") == ("pending",)

    start("--queues", "other")

    await queue.completed(there)
