-- merge_tallies: adds the oldest counts, at most :limit rows, to those of their hour. A duty's write: holder and term are
-- checked, and renewed, by the statement itself.
-- Returns whether the term holds, and how many rows were merged.
with renewed as materialized (
    update tenure.leases l
       set heartbeat_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => :ttl::float8)
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
    returning l.term),
taken as materialized (
    select t.ctid as place
      from tenure.tallies t
     where exists (select from renewed)
     limit :limit::integer
       for update skip locked),
merged as (
    delete from tenure.tallies t
     where t.ctid = any (array(select k.place from taken k))
    returning t.*),
added as (
    insert into tenure.counters as c (hour, queue, kind, what, jobs, waited, ran)
    select date_trunc('hour', m.at, 'UTC'), m.queue, m.kind, m.what, sum(m.jobs), coalesce(sum(m.waited), '0'), coalesce(sum(m.ran), '0')
      from merged m
     group by 1, 2, 3, 4
     order by 1, 2, 3, 4
    on conflict (queue, kind, what, hour) do update
       set jobs = c.jobs + excluded.jobs, waited = c.waited + excluded.waited, ran = c.ran + excluded.ran)
select exists (select from renewed), (select count(*) from merged)
