-- lock_leadership: takes the advisory lock of the strategy `advisory` if it is free, and returns whether this session holds it.
-- A lock that the session holds already is not taken twice: one unlock, or the end of the session, releases it.
select case when exists (
           select from pg_locks k
            where k.locktype = 'advisory' and k.pid = pg_backend_pid() and k.granted and k.objsubid = 1
              and (k.classid::bigint << 32 | k.objid::bigint) = :key::bigint)
       then true
       else pg_try_advisory_lock(:key::bigint) end
