"""Django's own task framework, with Tenure as its backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile

import django
import pytest

from tests.processes import run_process
from tests.waiting import until

if django.VERSION < (6,):
    pytest.skip("django.tasks is part of Django 6, which needs Python 3.12", allow_module_level=True)

BACKEND = "tenure.integrations.django.task_backend.TenureBackend"
NOT_OURS = {
    # They change the list in which DummyBackend keeps its results.
    "DummyBackendTestCase.test_refresh_result",
    "DummyBackendTestCase.test_refresh_result_async",
    # They assert that ImmediateBackend cannot do what Tenure can.
    "ImmediateBackendTestCase.test_cannot_get_result",
    "ImmediateBackendTestCase.test_cannot_pass_run_after",
    "ImmediateBackendTestCase.test_cannot_refresh_result",
    # Ctrl-C in the process that enqueues: the task runs in another one.
    "ImmediateBackendTestCase.test_throws_keyboard_interrupt",
}


@pytest.fixture
def parcels(shop):
    options = {"retry": {"max_attempts": 2, "initial": "1ms"}}
    tasks = {"default": {"BACKEND": BACKEND, "QUEUES": ["default", "express", "slow"], "OPTIONS": options}}
    return shop.varied(apps=["parcels"], TASKS=tasks)


@pytest.mark.slow
def test_django_s_own_tests_of_tasks(dsn, shop, tmp_path):
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    version = f"django=={django.get_version()}"
    fetched = subprocess.run([*command, "-d", tmp_path, version], capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"Django's source distribution cannot be downloaded here: {fetched.stderr[-300:]}")
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        wanted = [member for member in files.getmembers() if "/tests/tasks/" in member.name]
        files.extractall(tmp_path, members=wanted, filter="data")
    [tests] = tmp_path.glob("*/tests")
    program = [sys.executable, "-m", "tests.integrations.django.conformance", str(tests)]
    env = {**os.environ, "SHOP_DSN": dsn, "SHOP_TEST_NAME": shop.env["SHOP_TEST_NAME"]}
    ran = run_process(program, env=env, timeout=280)
    outcomes = json.loads(ran.stdout.splitlines()[-1])
    failed = {name for name, outcome in outcomes.items() if outcome == "failed"}
    assert failed - NOT_OURS == set(), ran.stderr
    assert len(outcomes) - len(failed) >= 79
    sys.stdout.write(f"Django {django.get_version()}: {len(outcomes) - len(failed)} of {len(outcomes)} tests passed\n")


async def test_tasks_run_in_workers_and_their_results_can_be_read_anywhere(parcels, sql):
    parcels.run("""
from parcels.tasks import apack, pack, pack_at_second_attempt
pack.enqueue("one", weight=3)
pack_at_second_attempt.enqueue("two")
apack.using(queue_name="slow").enqueue("three")
""")
    with parcels.worker():
        await until(lambda: sql("select count(*) from tenure.history where state = 'completed'"), is_=[(3,)], within=30)
    printed = parcels.run("""
from django.tasks import default_task_backend as backend
from tenure.integrations.django import app
from parcels.tasks import pack
for job in sorted(app.client().list_sync().jobs, key=lambda job: job.id):
    result = backend.get_result(str(job.id))
    assert result.started_at >= result.enqueued_at and result.finished_at >= result.last_attempted_at >= result.started_at
    print(result.task.name, result.task.queue_name, result.status, result.attempts, result.return_value, len(result.errors),
          [error.exception_class.__name__ for error in result.errors])
""")
    [first, second, third] = printed.splitlines()
    assert first.startswith("pack default SUCCESSFUL 1 [")
    assert first.endswith(", 3] 0 []")
    assert second.startswith("pack_at_second_attempt express SUCCESSFUL 2 [2, 'two', '")
    assert second.endswith(", 1] 1 ['ValueError']")
    assert third == "apack slow SUCCESSFUL 1 three 0 []"


def test_a_task_is_part_of_the_transaction_and_seen_in_it(parcels, sql):
    printed = parcels.run("""
from django.db import transaction
from django.tasks import default_task_backend as backend
from django.tasks.exceptions import TaskResultDoesNotExist
from parcels.tasks import note
with transaction.atomic():
    result = note.enqueue("one")
    assert backend.get_result(result.id) == result
    transaction.set_rollback(True)
try:
    backend.get_result(result.id)
except TaskResultDoesNotExist:
    print("gone")
""")
    assert printed == "gone\n"
    assert sql("select count(*) from tenure.jobs") == [(0,)]


def test_priorities_times_and_cancellations(parcels):
    printed = parcels.run("""
from datetime import timedelta
from django.utils import timezone
from parcels.tasks import note
from tenure.integrations.django import app
later = timezone.now() + timedelta(hours=1)
result = note.using(priority=-37, run_after=later, queue_name="slow").enqueue("one")
read = note.get_result(result.id)
assert (read.task.priority, read.task.run_after, read.task.queue_name) == (-37, later, "slow"), read
status = app.client().find_sync(result.id)
print(status.priority, status.state, read.status)
assert app.client().cancel_sync(result.id, reason="no longer wanted")
result.refresh()
print(result.status, result.errors, result.finished_at is not None)
""")
    assert printed == "31 scheduled READY\nFAILED [] True\n"


def test_options_of_a_backend_and_of_a_task(parcels, shop):
    wrong = {"default": {"BACKEND": BACKEND, "OPTIONS": {"max_attempt": 2}}}
    told = shop.varied(TASKS=wrong).manage("check", check=False)
    assert "TASKS['default']: unknown option 'max_attempt'" in told.stderr
    if django.VERSION >= (6, 1):
        parcels.run("""
from django.tasks import task
from parcels import tasks
from tenure.integrations.django import app
def once(): ...
once.__module__, once.__qualname__ = "parcels.tasks", "once"
task(max_attempts=7, timeout="5s")(once)
kind = app.kinds["parcels.tasks.once"]
assert (kind.retry.max_attempts, kind.timeout.total_seconds()) == (7, 5)
""")


async def test_jobs_that_are_not_tasks_are_not_results(parcels):
    parcels.run("""
from django.tasks import default_task_backend as backend
from django.tasks.exceptions import TaskResultDoesNotExist
from orders.jobs import ship
for wrong in (str(ship.enqueue_sync(1).id), "nonsense", "01900000-0000-7000-8000-000000000000"):
    try:
        backend.get_result(wrong)
    except TaskResultDoesNotExist:
        continue
    raise AssertionError(wrong)
""")
