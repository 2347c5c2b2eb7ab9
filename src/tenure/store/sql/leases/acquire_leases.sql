-- acquire_leases: takes every one of these duties that is free or whose holder let it run out; the term grows with the holder.
--   forced  takes them from whoever holds them, for a holder that was elected in another way.
-- A heartbeat that lies in the future was made before the server's clock was set back: if its holder lives, it beats again within
-- seconds; if not, the lease must not last until the clock is there again.
-- A holder that many share finds its lease as it is, and renews it only when half of it is over.
-- Returns the duties that are the holder's now, with their terms, and in how many seconds the first of the others may become free.
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
       -- The name stays the same, but setting it makes the row lock exclusive: it waits for a duty's statement that is under way
       -- (which holds the row for key share). The heartbeat does not set it, and waits for none.
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
