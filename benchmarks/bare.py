"""What a hand-written queue does: a table of the same shape, plain statements, nothing promised. For comparison."""

from __future__ import annotations

import json
import sys
import time

import psycopg

from benchmarks.jobs import PAYLOAD
from benchmarks.server import Probe

INPUT = json.dumps(PAYLOAD)

INSERT = """insert into bare (id, state, position, kind, queue, priority, max_attempts, input)
            values (%s, 'pending', nextval('bare_position'), 'noop', 'default', 50, 3, %s::text::jsonb)"""

# One commit for the row and the word.
INSERT_AND_NOTIFY = f"with added as ({INSERT} returning id) select pg_notify('bare', '') from added"

CLAIM = """
    with picked as materialized (
        select id from bare where state = 'pending' and queue = 'default'
         order by priority desc, position limit 10 for no key update skip locked)
    update bare b set state = 'running', claim_id = gen_random_uuid(), started_at = clock_timestamp(), attempt = attempt + 1
      from picked p where b.id = p.id
    returning b.input ->> 'sent'"""


def make_table(dsn: str) -> None:
    with Probe(dsn) as probe:
        probe.rows("create table bare (like tenure.jobs including all)")
        probe.rows("create sequence bare_position")


def listen(dsn: str, count: int) -> None:
    """Waits for `count` jobs and prints how old each was, in nanoseconds, when it could have begun."""
    with psycopg.connect(dsn, autocommit=True) as ears, psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as hands:
        hands.execute("set synchronous_commit = off")
        hands.execute(CLAIM)
        ears.execute("listen bare")
        print("ready", flush=True)
        ages: list[int] = []
        for _ in ears.notifies():
            rows = hands.execute(CLAIM).fetchall()
            now = time.time_ns()
            ages += [now - int(row[0]) for row in rows]
            if len(ages) >= count:
                break
    print(json.dumps(ages), flush=True)


if __name__ == "__main__":
    listen(sys.argv[1], int(sys.argv[2]))
