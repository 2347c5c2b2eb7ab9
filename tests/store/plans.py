"""Asking PostgreSQL how it would run a statement, in a database whose statistics are wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from tenure.store.connecting import PLANNER
from tenure.store.query import Query
from tenure.store.statements import statement
from tests.store.database import Database

MODES: dict[str, dict[str, str]] = {
    "hot": PLANNER,  # the links of workers
    "pooled": {"plan_cache_mode": "force_custom_plan"},  # behind a pooler: planned for each call, no setting is kept
}

FILL = """
    alter table tenure.jobs set (autovacuum_enabled = false);
    insert into tenure.workers (id, supervisor_id, host, pid, queues, kinds, capabilities, concurrency, version, expires_at)
    select md5('worker ' || n)::uuid, gen_random_uuid(), 'here', n, '["default"]', '["work"]', '[]', 10, '0',
           now() + interval '1 hour'
      from generate_series(1, 20) n;
    insert into tenure.jobs (id, kind, queue, state, position, priority, run_at, claim_id, crashes)
    select md5('job ' || n)::uuid, 'work', case when n % 3 = 0 then 'mail' else 'default' end, s.state,
           case when s.state in ('pending', 'running') then n else 0 end, (array[25, 50, 75])[1 + n % 3],
           case when s.state in ('scheduled', 'retry') then now() + (n - {rows} / 2) * interval '1 second' end,
           case when s.state = 'running' then md5('claim ' || n)::uuid end,
           0
      from generate_series(1, {rows}) n
     cross join lateral (
        select (array['pending', 'pending', 'pending', 'pending', 'scheduled', 'retry', 'running'])[1 + n % 7]) s(state);
    insert into tenure.claims (id, worker_id, job_ids)
    select j.claim_id, md5('worker ' || (1 + j.position % 20))::uuid, array[j.id] from tenure.jobs j where j.claim_id is not null;
    insert into tenure.history (id, fence, enqueued_at, finished_at, attempt, max_attempts, priority, crashes, state, kind,
           queue, input)
    select md5('done ' || n)::uuid, 1, now(), now(), 1, 3, 50, 0, 'completed', 'work', 'default', '{{}}'
      from generate_series(1, {rows} / 2) n;
"""

STATES = {
    "empty": "select 1",
    "never analysed, filled": "{fill}",
    "analysed while empty, then filled": "analyze tenure.jobs; analyze tenure.history; analyze tenure.workers; {fill}",
    "analysed with one row, then filled": """
        select tenure.enqueue('[{{"kind": "work"}}]');
        analyze tenure.jobs; analyze tenure.history; analyze tenure.workers; {fill}""",
    "analysed when every job was a dead letter, then filled": """
        insert into tenure.jobs (id, kind, state, position)
        select gen_random_uuid(), 'work', 'dead_letter', -1 from generate_series(1, 5000);
        analyze tenure.jobs; analyze tenure.history;
        delete from tenure.jobs; {fill}""",
    "drained, analysed with nothing but dead rows, then filled": """
        insert into tenure.jobs (id, kind, state, position)
        select gen_random_uuid(), 'work', 'dead_letter', -1 from generate_series(1, 5000);
        delete from tenure.jobs;
        analyze tenure.jobs; analyze tenure.history; {fill}""",
    "analysed when every job was running in one queue, then filled": """
        insert into tenure.jobs (id, kind, state, claim_id, position)
        select gen_random_uuid(), 'work', 'running', gen_random_uuid(), n from generate_series(1, 5000) n;
        analyze tenure.jobs; analyze tenure.history;
        delete from tenure.jobs; {fill}""",
}


@dataclass(frozen=True)
class Node:
    type: str
    relation: str | None
    index: str | None
    condition: str | None

    @property
    def from_end_to_end(self) -> bool:
        return self.type == "Seq Scan" or (self.type in ("Index Scan", "Index Only Scan") and self.condition is None)


def prepare_tables(database: Database, condition: str, rows: int) -> None:
    script = STATES[condition].format(fill=FILL.format(rows=rows))
    database.connection.execute(script.encode(), prepare=False)


def plan(database: Database, query: Query) -> list[Node]:
    """All nodes of the plan that a prepared statement would run, under the session's plan_cache_mode."""
    names = list(query.values)
    text = re.sub(r"%\((\w+)\)s", lambda m: f"${names.index(m[1]) + 1}", statement(query.name, database.schema)).replace(
        "%%", "%"
    )
    database.connection.execute(f"prepare asked as {text}".encode(), prepare=False)
    try:
        values = sql.SQL(", ").join(sql.Literal(query.values[name]) for name in names)
        asked = (
            sql.SQL("explain (format json) execute asked({})").format(values) if names else "explain (format json) execute asked"
        )
        [[[told]]] = database.connection.execute(asked).fetchall()
    finally:
        database.connection.execute("deallocate asked")
    return list(_nodes(told["Plan"]))


def walked(database: Database, nodes: list[Node]) -> list[str]:
    """The relations of jobs that are read from end to end although they are not empty."""
    names = {node.relation for node in nodes if node.from_end_to_end and (node.relation or "").startswith(("jobs", "history"))}
    return sorted(
        name for name in names if name and database.sql("select pg_relation_size(%s::regclass)", f"tenure.{name}") > [(0,)]
    )


def goes_by(nodes: list[Node], index: str) -> bool:
    """The index of a partition is named after the partition and its columns."""
    return any(node.index == index or (node.index or "").endswith(f"_{index}_idx") for node in nodes)


def _nodes(told: dict[str, Any]) -> Iterator[Node]:
    yield Node(told["Node Type"], told.get("Relation Name"), told.get("Index Name"), told.get("Index Cond"))
    for inner in told.get("Plans", ()):
        yield from _nodes(inner)
