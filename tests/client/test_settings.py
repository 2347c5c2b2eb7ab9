"""Where settings come from, and how mistakes in them are reported."""

from __future__ import annotations

import pytest

from tenure import ConfigError, Tenure
from tenure.settings import Settings

FILE, PROJECT = "tenure.toml", "pyproject.toml"


def load(folder, environ=None, **flags):
    return Settings.load(folder=folder, environ=environ or {}, **flags)


def test_each_source_yields_to_the_one_before_it(tmp_path):
    assert load(tmp_path).workers.concurrency == 10
    (tmp_path / PROJECT).write_text("[tool.tenure.workers]\nconcurrency = 1\n")
    assert load(tmp_path).workers.concurrency == 1
    (tmp_path / FILE).write_text("[workers]\nconcurrency = 2\n")
    assert load(tmp_path).workers.concurrency == 2
    environ = {"TENURE_WORKERS_CONCURRENCY": "3"}
    assert load(tmp_path, environ).workers.concurrency == 3
    assert load(tmp_path, environ, workers_concurrency=4).workers.concurrency == 4
    assert load(tmp_path, environ, workers_concurrency=None).workers.concurrency == 3


def test_the_database_is_found_in_the_same_order(tmp_path):
    (tmp_path / FILE).write_text('dsn = "postgresql://file/x"\n')
    assert load(tmp_path).dsn == "postgresql://file/x"
    assert load(tmp_path, {"PGHOST": "elsewhere"}).dsn == "postgresql://file/x"
    environ = {"DATABASE_URL": "postgresql://url/x"}
    assert load(tmp_path, environ).dsn == "postgresql://url/x"
    environ["TENURE_DSN"] = "postgresql://own/x"
    assert load(tmp_path, environ).dsn == "postgresql://own/x"
    assert load(tmp_path, environ, dsn="postgresql://flag/x").dsn == "postgresql://flag/x"


def test_the_variables_of_libpq_are_enough(tmp_path):
    assert load(tmp_path, {"PGDATABASE": "x"}).database.dsn == ""


def test_without_a_database_every_way_out_is_named(tmp_path):
    with pytest.raises(ConfigError) as caught:
        _ = load(tmp_path).database
    for way in ("--dsn", "TENURE_DSN", "DATABASE_URL", "tenure.toml", "[tool.tenure]", 'Tenure("', "tenure dev"):
        assert way in str(caught.value)


def test_nothing_is_read_before_it_is_needed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).write_text("this is not toml")
    app = Tenure()
    with pytest.raises(ConfigError, match=r"tenure\.toml"):
        _ = app.settings


def test_all_faults_are_reported_at_once_with_where_they_stand(tmp_path):
    (tmp_path / FILE).write_text('shema = "x"\n[workers]\nconcurrency = 0\nlease_timeout_seconds = "soon"\n')
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, {"TENURE_WORKERS_POLL_INTERVAL_MS": "fast"})
    told = str(caught.value)
    assert "unknown setting 'shema'; did you mean 'schema'?" in told
    assert "workers.concurrency must be at least 1" in told
    assert "lease_timeout_seconds" in told
    assert "TENURE_WORKERS_POLL_INTERVAL_MS" in told
    assert told.count("tenure.toml") >= 2


@pytest.mark.parametrize(
    "text",
    [
        "[workers]\nconcurrency = [1]\n",
        "[workers]\nconcurrency = 2.5\n",
        "[workers]\nconcurrency = true\n",
        "[workers]\nconcurrency = {a = 1}\n",
        'pooled = "perhaps"\n',
        "workers = 5\n",
        "retention_seconds = -1\n",
    ],
)
def test_a_value_of_the_wrong_kind_is_reported_as_such(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ConfigError):
        load(tmp_path)


def test_a_lease_too_short_is_refused_with_the_reason(tmp_path):
    with pytest.raises(ConfigError, match="at least 3"):
        load(tmp_path, workers_lease_timeout_seconds=1)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"leader_term_seconds": 5}, "at least three heartbeats \\(6\\)"),
        ({"leader_heartbeat_seconds": 4}, "term_seconds is 10, .* \\(12\\)"),
        ({"leader_heartbeat_seconds": 0.1}, "at least 0.5"),
        ({"leader_heartbeat_seconds": 0.5, "leader_term_seconds": 2}, "at least 3:"),
        ({"leader_reap_interval_seconds": 0}, "from 1 to 60"),
        ({"leader_cleanup_interval_seconds": 1}, "at least 10"),
        ({"workers_renew_interval_seconds": 10}, "half of lease_timeout_seconds \\(7.5\\)"),
        ({"workers_renew_interval_seconds": 0.1}, "from 0.5"),
    ],
)
def test_times_that_contradict_each_other_are_refused_with_the_way_out(tmp_path, settings, told):
    with pytest.raises(ConfigError, match=told):
        load(tmp_path, **settings)


def test_the_times_of_leaders_and_renewals_can_be_set(tmp_path):
    (tmp_path / FILE).write_text(
        "[leader]\nterm_seconds = 30\nheartbeat_seconds = 5\nreap_interval_seconds = 10\ncleanup_interval_seconds = '1m'\n"
        "[workers]\nlease_timeout_seconds = 60\nrenew_interval_seconds = 10\n"
    )
    found = load(tmp_path)
    leader = found.leader
    assert (leader.term, leader.heartbeat, leader.reap_every, leader.clean_every) == (30.0, 5.0, 10.0, 60.0)
    assert found.workers.renew_every == 10.0


def test_spans_may_be_written_in_words(tmp_path):
    (tmp_path / FILE).write_text('retention_seconds = "2d"\n[workers]\nlease_timeout_seconds = "30s"\n')
    found = load(tmp_path, {"TENURE_WORKERS_GRACE_SECONDS": "7.5"})
    assert (found.retention_seconds, found.workers.lease_timeout_seconds, found.workers.grace_seconds) == (172800.0, 30.0, 7.5)
    assert found.workers.renew_every == 10.0


@pytest.mark.parametrize(
    ("dsn", "pooled"),
    [
        ("postgresql://h/x", False),
        ("postgresql://h:6432/x", True),
        ("postgresql://h/x?pgbouncer=true", True),
        ("postgresql://h/x?pgbouncer=true&connect_timeout=3", True),
        ("postgresql://h/x?connect_timeout=3&pgbouncer=true", True),
    ],
)
def test_a_pooler_is_found_by_its_port_or_its_word(tmp_path, dsn, pooled):
    database = load(tmp_path, dsn=dsn).database
    assert database.pooled is pooled
    assert "pgbouncer" not in database.dsn
    assert load(tmp_path, dsn=dsn, pooled=not pooled).database.pooled is not pooled


def test_a_dsn_that_cannot_be_read_is_reported_without_a_traceback_of_the_driver(tmp_path):
    with pytest.raises(ConfigError, match="DSN"):
        _ = load(tmp_path, dsn="postgresql://h/x?nonsense=1").database


def test_the_nearest_file_above_the_working_folder_counts(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / FILE).write_text("schema = 'top'\n")
    assert load(inner).schema == "top"
    (tmp_path / "a" / PROJECT).write_text("[tool.other]\nx = 1\n")
    assert load(inner).schema == "top", "a project file that does not mention Tenure is none of ours"
    (tmp_path / "a" / PROJECT).write_text("[tool.tenure]\nschema = 'project'\n")
    assert load(inner).schema == "project"
    (inner / FILE).write_text("schema = 'own'\n")
    assert load(inner).schema == "own"


def test_a_broken_project_file_of_another_tool_in_a_folder_above_is_left_alone(tmp_path):
    (tmp_path / PROJECT).write_text("this is not toml")
    (tmp_path / "a").mkdir()
    assert load(tmp_path / "a").schema == "tenure"


def test_a_file_can_be_named_by_the_call_or_the_environment(tmp_path):
    (tmp_path / FILE).write_text("schema = 'found'\n")
    (tmp_path / "production.toml").write_text("schema = 'named'\n[workers]\nhealth_file = 'beat'\n")
    (tmp_path / "other.toml").write_text("schema = 'other'\n")
    environ = {"TENURE_CONFIG": str(tmp_path / "production.toml")}
    assert load(tmp_path, environ).schema == "named"
    assert load(tmp_path, environ, config=tmp_path / "other.toml").schema == "other"
    assert Tenure(config=tmp_path / "other.toml").settings.schema == "other"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert load(elsewhere, environ).workers.health_file == str(tmp_path / "beat"), "relative to the file that sets it"


def test_a_named_file_that_does_not_exist_is_an_error(tmp_path):
    for given in ({"environ": {"TENURE_CONFIG": str(tmp_path / "no.toml")}}, {"config": tmp_path / "no.toml"}):
        with pytest.raises(ConfigError, match=r"the file .*no\.toml does not exist"):
            load(tmp_path, **given)
    (tmp_path / PROJECT).write_text("[project]\n")
    with pytest.raises(ConfigError, match=r"has no \[tool.tenure\]"):
        load(tmp_path, config=tmp_path / PROJECT)


def test_an_empty_variable_names_no_database(tmp_path):
    assert load(tmp_path, {"TENURE_DSN": ""}).dsn is None


def test_the_log_format_is_text_or_json(tmp_path):
    assert load(tmp_path, {"TENURE_LOG_FORMAT": "json"}).log_format == "json"
    with pytest.raises(ConfigError, match="log_format must be one of text, json"):
        load(tmp_path, {"TENURE_LOG_FORMAT": "xml"})


def test_the_port_of_the_web_server(tmp_path):
    assert load(tmp_path, {"TENURE_WEB_LISTEN": "0", "TENURE_WEB_PORT": "tcp://10.0.0.1:80"}).web_listen == 0
    with pytest.raises(ConfigError, match="web_listen must be a port"):
        load(tmp_path, {"TENURE_WEB_LISTEN": "70000"})


def test_the_audit_log_is_kept_for_at_least_thirty_days(tmp_path):
    assert load(tmp_path, {"TENURE_AUDIT_RETENTION_SECONDS": "90d"}).leader.audit_retention == 90 * 86400
    with pytest.raises(ConfigError, match="audit_retention_seconds must be at least 30 days"):
        load(tmp_path, {"TENURE_AUDIT_RETENTION_SECONDS": "29d"})


def test_a_misspelled_variable_is_reported_once_and_those_of_others_are_left_alone(tmp_path, caplog):
    foreign = {"TENURE_PORT": "tcp://10.0.0.1:5432", "TENURE_SERVICE_HOST": "10.0.0.1", "TENURE_TEST_DSN": "x", "TENURE_LOG": "x"}
    for _ in range(2):
        load(tmp_path, {"TENURE_WORKERS_CONCURENCY": "3", "TENURE_CONFIG": "", **foreign})
    assert [record.getMessage() for record in caplog.records] == [
        "TENURE_WORKERS_CONCURENCY is not a setting and is ignored; did you mean TENURE_WORKERS_CONCURRENCY?"
    ]


def test_the_version_of_the_app_is_any_short_text(tmp_path):
    assert load(tmp_path, {}).app_version is None
    assert load(tmp_path, {"TENURE_APP_VERSION": "v12-3fa9c1"}).app_version == "v12-3fa9c1"
    assert Tenure("postgresql://", app_version="2026.11.3").settings.app_version == "2026.11.3"
    for text in ("two\nlines", "x" * 201):
        with pytest.raises(ConfigError, match="app_version must be at most 200 bytes of printable text"):
            load(tmp_path, {"TENURE_APP_VERSION": text})
