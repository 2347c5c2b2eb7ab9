-- acquire_leases: takes each of these duties that is free or whose lease has expired. A change of holder increments the term.
--   forced  takes them from any holder, for a holder that was elected in another way.
-- A heartbeat in the future was written before the server's clock was set back. If its holder is alive, it sends another one within
-- seconds; if not, the lease must not last until the clock reaches that time again.
-- A holder shared by several processes keeps its lease unchanged, and renews it only when half of it has passed.
-- Returns the duties that the holder has now, with their terms, and the seconds until the first of the others may become free.
with wanted as (
    select d.name, d.ttl from json_to_recordset(:duties::json) as d(name text, ttl double precision) order by d.name),
won as (
    insert into tenure.leases as l (name, holder, term, acquired_at, heartbeat_at, expires_at, metadata)
    select w.name, :holder::uuid, 1, clock_timestamp(), clock_timestamp(), clock_timestamp() + make_interval(secs => w.ttl),
           :metadata::jsonb
      from wanted w
     where :forced::boolean or not exists (
        select from tenure.leases l
         where l.name = w.name and l.expires_at > clock_timestamp() and l.heartbeat_at <= clock_timestamp() + interval '10 s'
           and not (l.holder = :holder::uuid and l.expires_at < clock_timestamp() + make_interval(secs => w.ttl / 2)))
    on conflict (name) do update
       -- The name stays the same, but setting it makes the row lock exclusive: it waits for running statements of the duty (which
       -- hold the row for key share). The heartbeat does not set it, and does not wait for them.
       set name = excluded.name, holder = excluded.holder,
           term = l.term + case when l.holder = excluded.holder and l.expires_at > clock_timestamp() then 0 else 1 end,
           acquired_at = case when l.holder = excluded.holder and l.expires_at > clock_timestamp() then l.acquired_at else excluded.acquired_at end,
           heartbeat_at = excluded.heartbeat_at, expires_at = excluded.expires_at, metadata = l.metadata || excluded.metadata
     where l.expires_at <= clock_timestamp() or l.heartbeat_at > clock_timestamp() + interval '10 s'
        or l.holder = excluded.holder or :forced::boolean
    returning l.name, l.term),
mine as (
    select w.name, w.term from won w
    union all
    select l.name, l.term
      from tenure.leases l
      join wanted d on d.name = l.name
     where l.holder = :holder::uuid and l.expires_at > clock_timestamp() and l.name not in (select w.name from won w))
select coalesce((select json_object_agg(m.name, m.term)::text from mine m), '{}') as won,
       (select extract(epoch from min(l.expires_at) - clock_timestamp())::float8
          from tenure.leases l
          join wanted d on d.name = l.name
         where l.name not in (select m.name from mine m)) as free_in
