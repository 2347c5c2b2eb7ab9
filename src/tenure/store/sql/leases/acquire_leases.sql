-- acquire_leases: takes every one of these duties that is free or whose holder let it run out; the term grows with the holder.
-- Returns the duties won with their terms, and in how many seconds the first of the others may become free.
with wanted as (
    select d.name, d.ttl from json_to_recordset(:duties::json) as d(name text, ttl double precision)),
won as (
    insert into tenure.leases as l (name, holder, term, acquired_at, heartbeat_at, expires_at, metadata)
    select w.name, :holder::uuid, 1, clock_timestamp(), clock_timestamp(), clock_timestamp() + make_interval(secs => w.ttl),
           :metadata::jsonb
      from wanted w
     where not exists (select from tenure.leases l where l.name = w.name and l.expires_at > clock_timestamp())
    on conflict (name) do update
       set holder = excluded.holder, term = l.term + 1, acquired_at = excluded.acquired_at,
           heartbeat_at = excluded.heartbeat_at, expires_at = excluded.expires_at, metadata = excluded.metadata
     where l.expires_at <= clock_timestamp()
    returning l.name, l.term)
select coalesce((select json_object_agg(w.name, w.term)::text from won w), '{}'),
       (select extract(epoch from min(l.expires_at) - clock_timestamp())::float8
          from tenure.leases l
          join wanted d on d.name = l.name
         where l.name not in (select w.name from won w))
