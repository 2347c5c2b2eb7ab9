-- clean_history: removes finished jobs of kinds that are kept for another time than their partition, at most :limit of each sort.
-- A duty's write: holder and term are checked by the statement itself.
--   Kinds with a retention of their own go when it is over. All others go when :keep seconds are over, as far as their
--   partition stays on for the sake of such a kind; looked for in the two days after that, not in all that is kept.
--   only  null, or the ids to which it is restricted; peek: removes nothing, and returns the ids as JSON
-- Returns whether the term holds, how many were removed of each sort, and the ids that were asked for.
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
gone as (
    delete from tenure.history h
     using (select o.id, o.finished_at from own o union all select o.id, o.finished_at from others o) o
     where h.id = o.id and h.finished_at = o.finished_at and not :peek::boolean)
select exists (select from leader) as holds, (select count(*) from own) as removed_own,
       (select count(*) from others) as removed_others,
       (select json_agg(o.id)::text from (select o.id from own o union select o.id from others o) o where :peek::boolean) as peeked
