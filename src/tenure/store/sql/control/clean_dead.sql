-- clean_dead: removes dead letters whose last run began more than :keep seconds ago, at most :limit. A duty's write: holder and
-- term are checked by the statement itself. What is being replayed at this moment is left alone.
-- Returns whether the term holds, and how many were removed.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for share),
old as materialized (
    select j.ctid as place
      from tenure.jobs j
     where j.state = 'dead_letter' and coalesce(j.started_at, j.enqueued_at) < now() - make_interval(secs => :keep::float8)
       and exists (select from leader)
     order by j.kind, j.id
     limit :limit::integer
       for update skip locked),
gone as (
    delete from tenure.jobs j where j.ctid = any (array(select o.place from old o)) and j.state = 'dead_letter' returning j.id)
select exists (select from leader), (select count(*) from gone)
