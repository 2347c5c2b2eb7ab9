"""tenure config."""

from __future__ import annotations

import pytest

from tenure.store.dsn import without_password


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(line, *words, **env):
    return {one["name"]: (one["value"], one["source"]) for one in line.json("config", *words, **env)["settings"]}


def test_every_setting_says_where_it_came_from(line, folder):
    (folder / "pyproject.toml").write_text("[tool.tenure]\nschema = 'project'\nworkers = {concurrency = 3, default_count = 7}\n")
    (folder / "tenure.toml").write_text("schema = 'own'\n[workers]\nconcurrency = 4\ngrace_seconds = '1m'\n")
    found = told(line, "--schema", "flag", TENURE_DSN="postgresql:///a", TENURE_WORKERS_CONCURRENCY="5", TENURE_POOLED="on")
    assert found["dsn"] == ("postgresql:///a", "TENURE_DSN")
    assert found["schema"] == ("flag", "--schema")
    assert found["pooled"] == (True, "TENURE_POOLED")
    assert found["workers.concurrency"] == (5, "TENURE_WORKERS_CONCURRENCY")
    assert found["workers.grace_seconds"] == (60.0, "tenure.toml")
    assert found["workers.default_count"] == (7, "[tool.tenure] of pyproject.toml")
    assert found["workers.lease_timeout_seconds"] == (15.0, "default")
    assert told(line)["schema"] == ("own", "tenure.toml")


def test_it_works_without_any_database(line):
    assert told(line, TENURE_DSN=None)["dsn"] == (None, "default")
    assert told(line, TENURE_DSN=None, PGHOST="h")["dsn"] == ("", "PG* variables")
    assert "not set" in line("config", TENURE_DSN=None).stdout


def test_what_the_code_says_counts_more_than_the_environment(line, folder, shop):
    module = shop.partition(":")[0]
    text = (folder / f"{module}.py").read_text()
    (folder / f"{module}.py").write_text(text.replace("Tenure()", "Tenure('postgresql:///code', schema='s')"))
    found = told(line, "--app", shop, "--schema", "flag")
    assert found["dsn"] == ("postgresql:///code", f"the code of {shop}")
    assert found["schema"] == ("flag", "--schema")


def test_wrong_settings_are_reported_all_at_once(line, folder):
    (folder / "tenure.toml").write_text("shcema = 'x'\n[workers]\nconcurrency = 0\n")
    refused = line("config")
    assert refused.exit_code == 3
    assert "did you mean 'schema'?" in refused.stderr
    assert "workers.concurrency" in refused.stderr


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://me:secret@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://me:sec@r/et@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me@host:5432/db?sslmode=require", "postgresql://me@host:5432/db?sslmode=require"),
        ("postgresql:///db?user=me&password=secret&host=h", "postgresql:///db?user=me&password=***&host=h"),
        ("postgresql:///db?sslpassword=secret", "postgresql:///db?sslpassword=***"),
        ("host=h password=secret dbname=db", "host=h password=*** dbname=db"),
        (r"password = 'it\'s secret' host=h", "password = *** host=h"),
        (r"user=me password=se\ cret host=h", "user=me password=*** host=h"),
        ("host=h dbname=db", "host=h dbname=db"),
        ("", ""),
    ],
)
def test_no_password_is_shown(dsn, shown):
    assert without_password(dsn) == shown


def test_the_table_hides_it_too(line):
    shown = line("config", "--dsn", "postgresql://me:swordfish@host/db")
    assert "me:***@host" in shown.stdout
    assert "swordfish" not in shown.output


def test_names_of_secrets_are_shown_as_a_list(line, folder):
    (folder / "tenure.toml").write_text("[web]\nsecret_names = ['iban', 'ssn']\n")
    assert told(line)["web_secret_names"] == ("iban, ssn", "tenure.toml")


def test_what_pools_say_themselves_is_shown_with_where_it_came_from(line, folder):
    (folder / "tenure.toml").write_text("[workers.media]\nqueues = ['a', 'b']\nmax_count = 3\n")
    found = told(line)
    assert found["workers.media.queues"] == ("a, b", "tenure.toml")
    assert found["workers.media.max_count"] == (3, "tenure.toml")
    assert found["workers.queues"] == (None, "default")


def test_the_file_may_be_named_and_one_above_is_shown_with_its_path(line, folder, monkeypatch):
    (folder / "tenure.toml").write_text("schema = 'found'\n")
    (folder / "production.toml").write_text("schema = 'named'\n")
    (folder / "deep").mkdir()
    monkeypatch.chdir(folder / "deep")
    assert told(line)["schema"] == ("found", "../tenure.toml")
    named = str(folder / "production.toml")
    assert told(line, "--config", "../production.toml")["schema"] == ("named", named)
    assert told(line, TENURE_CONFIG=named)["schema"] == ("named", named)
    assert told(line)["schema"] == ("found", "../tenure.toml"), "the flag was for one call only"
    refused = line("config", "--config", "missing.toml")
    assert refused.exit_code == 3
    assert "missing.toml does not exist" in refused.stderr


def test_a_dsn_that_cannot_be_read_is_not_shown_at_all(line):
    shown = line("config", "--dsn", "postgresql://me:s3cret@rest@db/x")
    assert "cannot be read" in shown.stdout
    assert "s3cret" not in shown.output
