"""Installs the triggers of `recorder.sql`, and exports what they recorded into the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tenure.chaos.ledger import Ledger
from tenure.model.errors import ConfigError

# COPY of plain lines: no character of JSON is special here.
PLAIN_LINES = r"with (format csv, quote E'\x01', delimiter E'\x02')"

MOVES = """select json_build_array(seq, extract(epoch from at), relation, job, was, state, fence, was_claim, claim, worker,
    attempt, max_attempts, crashes, position, queue, priority, kind, n, key, output,
    extract(epoch from due)) from chaos.moves order by seq"""
STEPS = """select json_build_array(seq, extract(epoch from at), job, name, number, what, was, state, fence, output)
    from chaos.steps order by seq"""
TERMS = """select json_build_array(seq, extract(epoch from at), duty, was_holder, was_term, holder, term)
    from chaos.terms order by seq"""
WORKERS = "select json_build_array(seq, extract(epoch from at), worker, pid, what, how) from chaos.workers order by seq"
LIMITS = "select json_build_array(seq, extract(epoch from at), name, concurrency, rate) from chaos.limits order by seq"
PLANS = """select json_build_array(seq, extract(epoch from at), name, kind, cron, every, timezone, overlap, catch_up,
    catch_up_limit, paused, retired, extract(epoch from was_since), extract(epoch from since)) from chaos.plans order by seq"""
TICKS = """select json_build_array(seq, extract(epoch from began), extract(epoch from at), xact, schedule,
    extract(epoch from planned_at), extract(epoch from until), times, was, outcome, job, by) from chaos.ticks order by seq"""
FINAL = """select json_build_array(id, state, kind, fence, claim_id, worker_id, attempt, max_attempts, crashes,
    (input ->> 'n')::bigint, key, output, extract(epoch from lease_expires_at - clock_timestamp())) from tenure.all_jobs"""
LINKS = """select json_build_array(a.id, a.chain_id, a.kind, a.state, a.next_id, a.parent_id,
    (select b.missing from tenure.blocked b where b.job_id = a.id)) from tenure.all_jobs a where a.kind like 'chained%'"""
EFFECTS = "select json_build_array(relation, n, job, fence) from chaos.effects"
AUDIT = """select json_build_array(id, extract(epoch from at), request_id, phase, actor, action, subject, status)
    from tenure.audit order by id"""

EXPORTS = {
    "moves.jsonl.gz": MOVES,
    "steps.jsonl.gz": STEPS,
    "terms.jsonl": TERMS,
    "workers.jsonl": WORKERS,
    "limits.jsonl": LIMITS,
    "plans.jsonl": PLANS,
    "ticks.jsonl": TICKS,
    "final.jsonl.gz": FINAL,
    "links.jsonl": LINKS,
    "effects.jsonl": EFFECTS,
    "audit.jsonl": AUDIT,
}


def install(connection: psycopg.Connection[Any]) -> None:
    """Refuses a database that has jobs: it may be in use."""
    used = connection.execute("select exists (select from tenure.jobs) or exists (select from tenure.history)").fetchone()
    recorded = connection.execute("select 1 from pg_namespace where nspname = 'chaos'").fetchone()
    if used == (True,) or recorded:
        raise ConfigError(
            "this database has jobs, or the record of another campaign: a campaign needs an empty database. "
            "Create one (`createdb chaos`) and pass its DSN, or omit --dsn to use an embedded server"
        )
    connection.execute(sql.SQL(Path(__file__).with_name("recorder.sql").read_text("utf-8")))


def export(connection: psycopg.Connection[Any], ledger: Ledger) -> None:
    for name, query in EXPORTS.items():
        with (
            ledger.write(name) as file,
            connection.cursor() as cursor,
            cursor.copy(f"copy ({query}) to stdout {PLAIN_LINES}") as lines,
        ):
            for data in lines:
                file.write(bytes(data).decode())
