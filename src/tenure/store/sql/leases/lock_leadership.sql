-- lock_leadership: whether this session holds the advisory lock of those who lead by it; takes it if it is free.
-- A lock that is held already is not taken twice: one unlock, or the end of the session, lets others in.
select case when exists (
           select from pg_locks k
            where k.locktype = 'advisory' and k.pid = pg_backend_pid() and k.granted and k.objsubid = 1
              and (k.classid::bigint << 32 | k.objid::bigint) = :key::bigint)
       then true
       else pg_try_advisory_lock(:key::bigint) end
