"""Roles and grants: who may run jobs, who may only enqueue them, who may only look. As SQL that can be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tenure.store.statements import quoted

Part = Literal["create", "grants"]

ENQUEUE_FUNCTIONS = ("enqueue", "enqueue_one", "emit", "add_members", "close_group", "database_id")
READ_FUNCTIONS = ("backlog",)


@dataclass(frozen=True, slots=True)
class _Names:
    schema: str

    @property
    def roles(self) -> list[str]:
        return [f"{self.schema}_{role}" for role in ("worker", "enqueue", "read")]


def roles_sql(schema: str, part: Part | None = None) -> str:
    """A script for psql or a driver, to be run after `tenure migrate`. It can be repeated, and should be after an upgrade.

    `create` needs CREATEROLE (an administrator), `grants` the schema's owner; without a part it is both.
    """
    names = _Names(schema)
    worker, enqueue, read = map(quoted, names.roles)
    head = f"-- {worker} runs workers, {enqueue} may only enqueue jobs, {read} may only look. Grant them to your login roles.\n"
    parts = {"create": _create(names), "grants": _grants(names) + _functions(names) + _defaults(names)}
    return head + "".join(text for name, text in parts.items() if part in (None, name))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _array(names: list[str] | tuple[str, ...]) -> str:
    return f"array[{', '.join(map(_literal, names))}]"


def _create(names: _Names) -> str:
    worker, enqueue, read = map(quoted, names.roles)
    return f"""
-- Roles belong to the whole server: an administrator makes them once. Those that exist are left as they are.
do $roles$
declare
    wanted text;
begin
    foreach wanted in array {_array(names.roles)} loop
        continue when exists (select from pg_roles r where r.rolname = wanted);
        begin
            execute format('create role %I nologin', wanted);  -- {worker}, {enqueue}, {read}
        exception
            when duplicate_object or unique_violation then null;  -- made by another session at the same moment
            when insufficient_privilege then
                raise exception 'role % is missing, and % may not create roles', wanted, current_user
                    using errcode = 'insufficient_privilege', hint = 'An administrator runs the output of '
                       || '`tenure sql --roles --part create`, then the owner of the schema that of `--part grants`.';
        end;
    end loop;
end
$roles$;

-- With it `tenure doctor` sees what other sessions do. Where the server does not allow it, all the rest works without.
do $roles$
begin
    grant pg_read_all_stats to {worker}, {read};
exception when insufficient_privilege then
    raise notice 'pg_read_all_stats is not granted: an administrator may grant it to the roles of workers and readers';
end
$roles$;
"""


def _grants(names: _Names) -> str:
    worker, enqueue, read = map(quoted, names.roles)
    schema = quoted(names.schema)
    return f"""
do $roles$
declare
    home text := {_literal(names.schema)};
    owner oid := (select n.nspowner from pg_namespace n where n.nspname = home);
begin
    if owner is null then
        raise exception 'there is no schema % in database %', home, current_database() using hint = 'Run `tenure migrate` first.';
    end if;
    if not pg_has_role(current_user, owner, 'usage') then
        raise exception 'schema % belongs to %, and % may not grant rights to it', home, owner::regrole, current_user
            using errcode = 'insufficient_privilege',
                  hint = format('Run this as %1$s, or as a member of it: grant %1$s to %2$I.', owner::regrole, current_user);
    end if;
end
$roles$;
revoke all on schema {schema} from public;
revoke all on all tables in schema {schema} from public;
revoke all on all functions in schema {schema} from public;
grant usage on schema {schema} to {worker}, {enqueue}, {read};
grant select, insert, update, delete on all tables in schema {schema} to {worker};
grant usage, select on all sequences in schema {schema} to {worker};
grant execute on all functions in schema {schema} to {worker};
grant select on all tables in schema {schema} to {read};
-- The audit log is append-only, and signing keys are for processes that sign.
revoke update, delete on {schema}.audit from {worker};
revoke all on {schema}.signing_keys from {read};
"""  # noqa: S608 - names are quoted above


def _functions(names: _Names) -> str:
    _, enqueue, read = map(_literal, names.roles)
    return f"""
-- By their names, because their parameters may differ between versions.
do $roles$
declare
    granted record;
begin
    for granted in
        select p.oid::regprocedure as function, g.role
          from (values ({_array(ENQUEUE_FUNCTIONS)}, {enqueue}), ({_array(READ_FUNCTIONS)}, {read})) as g(names, role)
          join pg_proc p on p.proname = any (g.names)
          join pg_namespace n on n.oid = p.pronamespace and n.nspname = {_literal(names.schema)}
    loop
        execute format('grant execute on function %s to %I', granted.function, granted.role);
    end loop;
end
$roles$;
"""  # noqa: S608 - literals are quoted above


def _defaults(names: _Names) -> str:
    worker, _, read = names.roles
    return f"""
-- What later migrations and the cleaner create is open to the same roles. Default privileges are those of the role that creates
-- something: they are set for every role that owns something here, not for the one that runs this script.
do $roles$
declare
    home text := {_literal(names.schema)};
    worker text := {_literal(worker)};
    read text := {_literal(read)};
    owner text;
begin
    for owner in
        select format('for role %s in schema %I', o.role::regrole, home)
          from (select n.oid, n.nspowner from pg_namespace n where n.nspname = home) n
         cross join lateral (
            select n.nspowner as role
            union select c.relowner from pg_class c where c.relnamespace = n.oid
            union select p.proowner from pg_proc p where p.pronamespace = n.oid) o
    loop
        execute format('alter default privileges %s grant select, insert, update, delete on tables to %I', owner, worker);
        execute format('alter default privileges %s grant usage, select on sequences to %I', owner, worker);
        execute format('alter default privileges %s grant execute on functions to %I', owner, worker);
        execute format('alter default privileges %s grant select on tables to %I', owner, read);
    end loop;
end
$roles$;
"""  # noqa: S608 - literals are quoted above
