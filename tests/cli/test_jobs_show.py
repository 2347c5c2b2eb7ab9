"""tenure jobs list, show, report; tenure explain."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from tests.client.stock import id_of, lay_out
from tests.store.forged_jobs import change_state

UNKNOWN = "01890000-0000-7000-8000-000000000000"


def test_an_empty_list_says_so_and_is_an_empty_document(line):
    assert line("jobs", "list").stderr == "no jobs\n"
    assert line("jobs", "list", "--kind", "nothing").stderr == "no matching jobs\n"
    assert line.json("jobs", "list") == {"jobs": [], "next": None}


def test_a_list_shows_whole_ids_and_what_state_they_are_in_since_when(line, enqueue_job):
    now, later = enqueue_job(), enqueue_job(delay="2h")
    shown = line("jobs", "list").stdout.splitlines()
    assert shown[0].split() == ["ID", "STATE", "KIND", "QUEUE", "PRIORITY", "ATTEMPT", "WHEN"]
    assert shown[1].startswith(f"{later}  scheduled  work")
    assert shown[1].endswith("in 2 h")
    assert shown[2].startswith(f"{now}  pending")
    assert not any(row.endswith(" ") for row in shown)


def test_pages_go_through_all_jobs_once(line, database):
    lay_out(database, 90)
    seen, after = [], []
    while True:
        page = line.json("jobs", "list", "--limit", 40, *after)
        seen += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        after = ["--after", page["next"]]
    assert seen == [str(id_of(database, n)) for n in range(90, 0, -1)]
    assert "--after" in line("jobs", "list", "--limit", 40).stderr


def test_a_list_may_be_longer_than_a_page_of_the_client(line, database):
    lay_out(database, 1100)
    assert len(line.json("jobs", "list", "--limit", 1050)["jobs"]) == 1050


def test_the_filters_are_those_of_the_client(line, database):
    lay_out(database, 120)
    for words, fits in [
        (["--state", "failed, canceled"], lambda job: job["state"] in ("failed", "canceled")),
        (["-s", "failed", "-s", "pending"], lambda job: job["state"] in ("failed", "pending")),
        (["--kind", "kind1", "--queue", "queue2"], lambda job: job["kind"] == "kind1" and job["queue"] == "queue2"),
        (["--priority", "high"], lambda job: job["priority"] == 75),
        (["--capability", "gpu"], lambda job: job["capability"] == "gpu"),
        (["--parent", id_of(database, 1)], lambda job: job["parent_id"] is not None),
        (["--input", '{"even": true}'], lambda job: job["input"]["even"]),
    ]:
        everything = line.json("jobs", "list", "--limit", 200)["jobs"]
        expected = [job["id"] for job in everything if fits(job)]
        assert 0 < len(expected) < 120
        assert [job["id"] for job in line.json("jobs", "list", "--limit", 200, *words)["jobs"]] == expected


def test_since_and_until_take_spans_and_times(line, enqueue_job):
    job_id = enqueue_job()
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    for words, found in [
        (["--since", "5m"], 1),
        (["--until", "5m"], 0),
        (["--since", tomorrow], 0),
        (["--until", tomorrow], 1),
        (["--since", "2020-01-31T18:30:00+02:00"], 1),
    ]:
        assert [job["id"] for job in line.json("jobs", "list", *words)["jobs"]] == [job_id] * found


def test_what_cannot_be_meant_is_wrong_usage_reported_in_one_line(line):
    for words, told in [
        (["--state", "faild"], "did you mean 'failed'?"),
        (["--since", "yesterday"], "or an age such as"),
        (["--input", "{n: 1}"], "is not valid JSON"),
        (["--input", "[1]"], "is not a JSON object"),
        (["--priority", "hihg"], "did you mean 'high'?"),
        (["--after", "here"], "is not a cursor"),
        (["--limit", "0"], "x>=1"),
        (["--sate", "failed"], "--state"),
    ]:
        refused = line("jobs", "list", *words)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.startswith("tenure: ")
        assert told in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_a_command_that_does_not_exist_names_the_nearest(line):
    assert "did you mean 'list'?" in line("jobs", "lst").stderr
    assert "did you mean 'workers'?" in line("workres").stderr
    assert line("workres").exit_code == 2


def test_show_prints_what_is_set_and_nothing_else(line, enqueue_job):
    job_id = enqueue_job(7, key="k7", meta={"from": "here"})
    shown = line("jobs", "show", job_id).stdout
    told = dict(row.split(maxsplit=1) for row in shown.splitlines())
    assert told["id"] == job_id
    assert told["state"] == "pending"
    assert told["input"] == '{"n": 7}'
    assert (told["key"], told["meta"]) == ("k7", '{"from": "here"}')
    assert told["enqueued"].endswith("(now)") or told["enqueued"].endswith("s ago)")
    assert "output" not in told
    assert line.json("jobs", "show", job_id)["input"] == {"n": 7}
    assert line.json("jobs", "show", job_id)["progress"] is None


def test_nothing_in_a_job_acts_on_the_terminal(line, sql, enqueue_job):
    job_id = enqueue_job()
    sql("update tenure.jobs set kind = %s, error = %s", "[red]\x1b[2Jwork", "\x1b]0;title\x07")
    for words in (["jobs", "list"], ["jobs", "show", job_id], ["jobs", "report", job_id], ["explain", job_id], ["stats"]):
        shown = line(*words).stdout
        assert "[red]\\x1b[2Jwork" in shown
        assert "\x1b" not in shown


def test_the_first_characters_of_an_id_are_enough(line, database):
    lay_out(database, 200)
    for n in (1, 100, 200):  # the oldest, one in the middle, the newest; live and finished
        whole = str(id_of(database, n))
        assert line.json("jobs", "show", whole[:13])["id"] == whole
        assert line.json("jobs", "show", whole.replace("-", "")[:20])["id"] == whole


def test_an_id_that_fits_several_none_or_nothing(line, database):
    lay_out(database, 200)
    several = line("jobs", "show", str(id_of(database, 100))[:8])
    assert several.exit_code == 2
    first, *listed = several.stderr.splitlines()
    assert "several job ids start with" in first
    assert "give more of the id (the newest 5 are shown)" in first
    assert len(listed) == 5
    for row in listed:
        job_id, state, kind = row.split()
        found = line.json("jobs", "show", job_id)
        assert (found["state"], found["kind"]) == (state, kind)
    for nobody in (UNKNOWN, UNKNOWN[:12], "ffffffff"):
        missing = line("jobs", "show", nobody)
        assert (missing.exit_code, missing.stdout) == (8, "")
        assert nobody in missing.stderr
    for wrong in ("0189000", "01890000x", "job1", "0x12345678", "1234_5678"):
        assert line("jobs", "show", "--", wrong).exit_code == 2


def test_a_report_for_people_programs_and_browsers(line, enqueue_job, tmp_path):
    job_id = enqueue_job(3)
    assert job_id in line("jobs", "report", job_id).stdout
    assert line.json("jobs", "report", job_id)["job"]["id"] == job_id
    page = tmp_path / "report.html"
    assert str(page) in line("jobs", "report", job_id, "--html", page).stderr
    for text in (page.read_text(), line("jobs", "report", job_id, "--html", "-").stdout):
        assert text.startswith("<!")
        assert text.endswith("</html>\n")
        assert job_id in text
    unwritable = line("jobs", "report", job_id, "--html", tmp_path / "no" / "such.html")
    assert unwritable.exit_code == 1
    assert "cannot be written" in unwritable.stderr


def test_a_report_in_full_leaves_nothing_out(line, sql, enqueue_job):
    job_id = enqueue_job()
    sql("update tenure.jobs set error = %s", "\n".join(f"line {n}" for n in range(50)))
    assert "line 3\n" not in line("jobs", "report", job_id).stdout
    assert "line 3\n" in line("jobs", "report", job_id, "--full").stdout


def test_explain_names_commands_and_no_methods(line, enqueue_job, sql):
    later, paused, dead, done = enqueue_job(delay="1h"), enqueue_job(queue="mail"), enqueue_job(), enqueue_job()
    line("queues", "pause", "mail")
    change_state(sql, "dead_letter", dead)
    line("jobs", "cancel", done, "--yes")
    for job_id, command in (
        (later, f"tenure jobs retry {later}"),
        (paused, "tenure queues resume mail"),
        (dead, f"tenure jobs replay {dead}"),
        (done, f"tenure jobs retry {done}"),
    ):
        told = line("explain", job_id).stdout
        assert command in told
        assert "()" not in told
        assert "client." not in told


def test_explain_prints_why_and_what_to_type(line, enqueue_job):
    job_id = enqueue_job()
    line("queues", "pause", "default", "--reason", "the printer is out of paper")
    told = line("explain", job_id)
    assert told.exit_code == 0
    assert "out of paper" in told.stdout
    assert "    tenure queues resume default\n" in told.stdout
    codes = [reason["code"] for reason in line.json("explain", job_id)["reasons"]]
    assert codes == ["paused", "no_worker"]
    assert line("explain", UNKNOWN).exit_code == 8


def test_json_is_one_document_on_one_line(line, enqueue_job):
    enqueue_job()
    shown = line("jobs", "list", "--json").stdout
    assert shown.count("\n") == 1
    assert set(json.loads(shown)) == {"jobs", "next"}


def test_explain_names_a_command_that_starts_a_worker_once(line, enqueue_job):
    shown = line("explain", str(enqueue_job())).stdout
    assert shown.count("tenure worker") == 1
    assert "tenure worker --app MODULE:APP" in shown
