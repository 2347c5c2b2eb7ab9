-- clean_history: removes finished jobs whose retention ends before their partition is dropped, at most :limit of each sort. Run by a
-- duty: the statement itself checks holder and term.
--   Jobs of kinds with their own retention are removed when it ends. All others are removed after :keep seconds, if such a kind keeps
--   their partition for longer; only jobs that reached this age in the last two days are searched, not all of history.
--   only  null, or the ids to restrict it to; peek: removes nothing, and returns the ids as JSON
-- Returns whether the term holds, the number of jobs removed of each sort, and with peek the ids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
own as materialized (
    select h.id, h.finished_at
      from tenure.retentions r
     cross join lateral (
        select h.id, h.finished_at from tenure.history h
         where h.kind = r.kind and h.finished_at < now() - r.keep and (:only::uuid[] is null or h.id = any (:only::uuid[]))
         limit :limit::integer) h
     where exists (select from leader)
     limit :limit::integer),
others as materialized (
    select h.id, h.finished_at
      from tenure.history h
     where h.finished_at < now() - make_interval(secs => :keep::float8)
       and h.finished_at > now() - make_interval(secs => :keep::float8) - interval '2 days'
       and exists (select from tenure.retentions r where r.keep > make_interval(secs => :keep::float8))
       and not exists (select from tenure.retentions r where r.kind = h.kind)
       and exists (select from leader) and (:only::uuid[] is null or h.id = any (:only::uuid[]))
     limit :limit::integer),
removed as (
    delete from tenure.history h
     using (select o.id, o.finished_at from own o union all select o.id, o.finished_at from others o) o
     where h.id = o.id and h.finished_at = o.finished_at and not :peek::boolean)
select exists (select from leader) as holds, (select count(*) from own) as removed_own,
       (select count(*) from others) as removed_others,
       (select json_agg(o.id)::text from (select o.id from own o union select o.id from others o) o where :peek::boolean) as peeked
