-- keep_history: partitions made ahead and dropped by age. A duty's write: holder and term are checked by the statement itself.
-- A partition stays as long as any kind wants its finished jobs kept.
-- Returns how many partitions were made and dropped; no row when the term is over.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for share),
longest as (
    select greatest(make_interval(secs => :keep::float8), (select max(r.keep) from tenure.retentions r)) as keep)
select k.made, k.dropped
  from leader
 cross join longest l
 cross join lateral tenure.keep_history(:days_ahead::integer, l.keep) k
