-- clean_counts: removes watches that are over, counts of hours that ended more than :keep seconds ago, and counts of minutes that
-- ended more than a day ago, at most :limit of each. A duty's write: holder and term are checked by the statement itself.
-- Returns whether the term holds, and how many were removed of each.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for share),
over as materialized (
    select w.ctid as place
      from tenure.watches w
     where w.until < now() and exists (select from leader)
     limit :limit::integer
       for update skip locked),
old as materialized (
    select c.ctid as place
      from tenure.counters c
     where c.hour < now() - make_interval(secs => :keep::float8) and exists (select from leader)
     limit :limit::integer
       for update skip locked),
old_minutes as materialized (
    select c.ctid as place
      from tenure.minutes c
     where c.minute < now() - interval '1 day' and exists (select from leader)
     order by c.minute
     limit :limit::integer
       for update skip locked),
old_latencies as materialized (
    select c.place
      from (values ('minute', interval '1 day'), ('hour', make_interval(secs => :keep::float8))) as s(span, keep)
     cross join lateral (
        select c.ctid as place from tenure.latencies c
         where c.span = s.span and c.at < now() - s.keep and exists (select from leader)
         order by c.at
         limit :limit::integer
           for update skip locked) c
     limit :limit::integer),
unwatched as (
    delete from tenure.watches w where w.ctid = any (array(select o.place from over o)) returning w.job_id),
uncounted as (
    delete from tenure.counters c where c.ctid = any (array(select o.place from old o)) returning c.hour),
minutes_gone as (
    delete from tenure.minutes c where c.ctid = any (array(select o.place from old_minutes o)) returning c.minute),
latencies_gone as (
    delete from tenure.latencies c where c.ctid = any (array(select o.place from old_latencies o)) returning c.at)
select exists (select from leader), (select count(*) from unwatched), (select count(*) from uncounted),
       (select count(*) from minutes_gone), (select count(*) from latencies_gone)
