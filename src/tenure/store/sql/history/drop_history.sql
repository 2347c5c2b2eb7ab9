-- drop_history: drops the oldest partition of history if nothing in it is to be kept any more. A duty's write: holder and term are
-- checked by the statement itself. A partition stays as long as any kind wants its finished jobs kept.
-- Returns its name, or null: there is none. No row when the term is over.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
longest as (
    select greatest(make_interval(secs => :keep::float8), (select max(r.keep) from tenure.retentions r)) as keep)
select tenure.drop_history(l.keep) from leader cross join longest l
