-- drop_history: drops the oldest partition of history if no job in it must be kept any longer. Run by a duty: the statement itself
-- checks holder and term. A partition stays until the longest retention of any kind has ended.
-- Returns its name, or null if there is none to drop. No row if the term has ended.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
longest as (
    select greatest(make_interval(secs => :keep::float8), (select max(r.keep) from tenure.retentions r)) as keep)
select tenure.drop_history(l.keep) from leader cross join longest l
