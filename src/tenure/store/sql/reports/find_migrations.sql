-- find_migrations: the migrations that were applied.
select m.version, m.phase from tenure.migrations m
