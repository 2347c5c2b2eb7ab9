"""Bugs in how connections are made, and in what an error of PostgreSQL is taken for."""

from __future__ import annotations

from tests.planted.bug import Bug, Edit, Promise

CONNECTING = "store/connecting.py"
SETTINGS = "tests/store/test_session_settings.py"

BUGS = (
    Bug(
        name="isolation_left_to_the_database",
        breaks="where the default is repeatable read, more jobs run than a limit allows",
        promise=Promise.LIMITS,
        edits=(
            Edit(CONNECTING, '    "default_transaction_isolation": "read committed",\n', ""),
            Edit(CONNECTING, "        await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)\n", ""),
        ),
        caught_by=(
            f"{SETTINGS}::test_a_limit_of_one_holds_where_the_default_is_repeatable_read",
            f"{SETTINGS}::test_a_link_overrides_the_settings_of_the_database",
        ),
    ),
    Bug(
        name="timeouts_left_to_the_database",
        breaks="a timeout that a person sets for the database ends duties again and again",
        promise=Promise.OUTAGE,
        edits=(Edit(CONNECTING, '    "statement_timeout": "0",\n    "lock_timeout": "0",\n', ""),),
        caught_by=(f"{SETTINGS}::test_a_link_overrides_the_settings_of_the_database",),
    ),
    Bug(
        name="encoding_left_to_the_database",
        breaks="in a database with another encoding no worker finds its schema",
        promise=Promise.OUTAGE,
        edits=(Edit(CONNECTING, '        "client_encoding": "UTF8",\n', ""),),
        caught_by=(f"{SETTINGS}::test_a_database_in_another_encoding_works",),
    ),
    Bug(
        name="statements_lost_by_a_rollback",
        breaks="after a refused claim the next one fails, and its connection is opened again",
        promise=Promise.OUTAGE,
        edits=(
            Edit(
                "store/link.py",
                "await connection.wait(send_rollback(connection))",
                'await connection.execute("rollback", prepare=False)',
            ),
        ),
        caught_by=("tests/store/test_prepared.py::test_a_refused_pair_of_statements_leaves_the_prepared_ones_usable",),
    ),
    Bug(
        name="first_host_taken",
        breaks="of two servers the standby is used, if it is named first, and nothing can be written",
        promise=Promise.OUTAGE,
        edits=(
            Edit(
                CONNECTING,
                'return {"target_session_attrs": "read-write"} if "," in hosts and not given else {}',
                "return {} if hosts or given else {}",
            ),
        ),
        caught_by=("tests/outages/test_hosts.py::test_of_two_hosts_the_one_that_takes_writes_is_used",),
    ),
    Bug(
        name="some_codes_are_no_refusal",
        breaks="one outcome that a trigger refuses with a code of its own stops the settling of a whole process",
        promise=Promise.ONCE,
        edits=(
            Edit(
                "store/faults.py",
                "    denied = isinstance(error, errors.InsufficientPrivilege)",
                "    if not is_poison(error):\n        return None\n    denied = isinstance(error, errors.InsufficientPrivilege)",
            ),
        ),
        caught_by=(
            "tests/store/test_faults.py::test_one_row_that_is_refused_for_any_reason_is_found_and_the_others_are_written",
        ),
    ),
    Bug(
        name="second_connection_waited_for",
        breaks="when all runs of a process hold one connection and want another, all of them wait until they give up",
        promise=Promise.TIME,
        edits=(
            Edit(
                "store/quota.py",
                "        return all(holder in waiting for holder in self._held)\n",
                "        return not waiting\n",
            ),
        ),
        caught_by=(
            "tests/worker/test_pools.py::test_when_every_holder_waits_for_another_connection_the_first_of_them_gets_one_more",
        ),
    ),
    Bug(
        name="schema_names_not_quoted",
        breaks="a schema whose name is a keyword cannot be migrated",
        promise=Promise.CONTROL,
        edits=(
            Edit(
                "store/statements.py",
                '_PLAIN = re.compile(r"tenure[a-z0-9_]*")',
                '_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")',
            ),
        ),
        caught_by=("tests/store/test_schema_names.py::test_any_other_name_works_from_end_to_end",),
        by_error=True,
    ),
    Bug(
        name="reads_not_repeated",
        breaks="status(), list() and other reads fail when their connection breaks, though PostgreSQL answers again at once",
        promise=Promise.OUTAGE,
        edits=(
            Edit(
                "client/reading.py",
                "return await repeat_while_away(lambda _: fetch(query) if long else _try(fetch, query, deadline), failed)",
                "return await (fetch(query) if long else _try(fetch, query, deadline))",
            ),
        ),
        caught_by=("tests/client/test_away.py::test_reads_go_on_after_their_connections_broke",),
    ),
)
