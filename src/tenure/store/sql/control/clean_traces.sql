-- clean_traces: removes progress, log lines and incidents older than :keep seconds of jobs that are not live any more, at most
-- :limit of each. A duty's write: holder and term are checked by the statement itself.
-- Returns whether the term holds, and how many were removed of each.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for share),
old_progress as materialized (
    select p.ctid as place
      from tenure.progress p
     where p.began_at < now() - make_interval(secs => :keep::float8) and exists (select from leader)
       and (select j.id from tenure.jobs j where j.id = p.job_id limit 1) is null
     order by p.began_at
     limit :limit::integer
       for update skip locked),
old_logs as materialized (
    select g.ctid as place
      from tenure.logs g
     where g.at < now() - make_interval(secs => :keep::float8) and exists (select from leader)
       and (select j.id from tenure.jobs j where j.id = g.job_id limit 1) is null
     order by g.at
     limit :limit::integer
       for update skip locked),
old_incidents as materialized (
    select n.ctid as place
      from tenure.incidents n
     where n.at < now() - make_interval(secs => :keep::float8) and exists (select from leader)
       and (select j.id from tenure.jobs j where j.id = n.job_id limit 1) is null
     order by n.at
     limit :limit::integer
       for update skip locked),
gone_progress as (
    delete from tenure.progress p where p.ctid = any (array(select o.place from old_progress o)) returning p.job_id),
gone_logs as (
    delete from tenure.logs g where g.ctid = any (array(select o.place from old_logs o)) returning g.job_id),
gone_incidents as (
    delete from tenure.incidents n where n.ctid = any (array(select o.place from old_incidents o)) returning n.job_id)
select exists (select from leader), (select count(*) from gone_progress), (select count(*) from gone_logs),
       (select count(*) from gone_incidents)
