-- find_migrations: which migrations were applied.
select m.version, m.phase from tenure.migrations m
