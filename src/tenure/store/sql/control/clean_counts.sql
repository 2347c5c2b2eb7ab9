-- clean_counts: removes watches that are over, and counts of hours that ended more than :keep seconds ago, at most :limit of
-- each. A duty's write: holder and term are checked, and renewed, by the statement itself.
-- Returns whether the term holds, and how many were removed of each.
with renewed as materialized (
    update tenure.leases l
       set heartbeat_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => :ttl::float8)
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
    returning l.term),
over as materialized (
    select w.ctid as place
      from tenure.watches w
     where w.until < now() and exists (select from renewed)
     limit :limit::integer
       for update skip locked),
old as materialized (
    select c.ctid as place
      from tenure.counters c
     where c.hour < now() - make_interval(secs => :keep::float8) and exists (select from renewed)
     limit :limit::integer
       for update skip locked),
unwatched as (
    delete from tenure.watches w where w.ctid = any (array(select o.place from over o)) returning w.job_id),
uncounted as (
    delete from tenure.counters c where c.ctid = any (array(select o.place from old o)) returning c.hour)
select exists (select from renewed), (select count(*) from unwatched), (select count(*) from uncounted)
