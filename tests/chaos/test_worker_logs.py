"""What a campaign reports about its workers: refusals that no fault has caused, and processes that should have exited."""

from __future__ import annotations

import os

from tenure.chaos.workers import describe_process, unexpected_refusals

LINE = '18:10:06 ERROR   tenure[7] PostgreSQL refuses to claim a job: it is passed over  job_id=1  sqlstate={}  error="{}"\n'


def test_what_no_fault_has_caused_is_found_in_the_logs(tmp_path):
    wrong = LINE.format("42703", 'record \\"old\\" has no field')
    log = (wrong, wrong, LINE.format("42501", "the campaign refuses to claim this row"), LINE.format("53100", "disk full"))
    (tmp_path / "worker-1.log").write_text("".join(log) + "an ordinary line with sqlstate=42703\n", "utf-8")
    (tmp_path / "worker-2.log").write_bytes(b"\xff\xfe not text\n")
    assert unexpected_refusals(tmp_path) == {'sqlstate=42703  error="record \\"old\\" has no field"': 2}


def test_a_process_is_described_by_its_command_and_parent():
    described = describe_process(os.getpid())
    assert "pytest" in described or "python" in described
    assert f"parent {os.getppid()}" in described
    assert describe_process(1 << 30) == "it has exited meanwhile"
