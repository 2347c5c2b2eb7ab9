-- delete_jobs: removes jobs, live or finished, with everything that is stored about them.
--   force  also removes running jobs; without it, nothing is removed while one of the jobs runs
-- If no waiting job has learned yet that a chain has ended, its end is that it was deleted: its output is gone.
-- Returns one row per job that existed: whether it is removed now, whether it was running, whether a client watches it, whether jobs
-- wait for it, and its kind. If
-- it is neither removed nor running, another session has locked its row: call again.
with running as materialized (
    select j.id
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (select j.id, j.claim_id from tenure.jobs j where j.id = i.id limit 1) j
     where j.claim_id is not null),
found as materialized (
    select j.tid
      from unnest(:ids::uuid[]) as i(id)
     cross join lateral (
        select j.ctid as tid
          from tenure.jobs j
         where j.id = i.id and (:force::boolean or j.claim_id is null)
         limit 1
           for update skip locked) j
     where :force::boolean or not exists (select from running)),
live as (
    delete from tenure.jobs j
     where j.ctid = any (array(select f.tid from found f))
    returning j.id, j.kind, j.queue, j.key, case when j.dependants then coalesce(j.chain_id, j.id) end as chain),
finished as (
    delete from tenure.history h
     where h.id = any (:ids::uuid[]) and (:force::boolean or not exists (select from running))
    returning h.id, h.kind, h.queue, h.key, null::uuid as chain, coalesce(h.chain_id, h.id) as ended_chain),
unresolved as (
    update tenure.chain_endings e
       set state = 'deleted'
     where e.chain_id = any (array(select f.ended_chain from finished f)) and e.job_id = any (array(select f.id from finished f))
       and not e.resolved and not exists (select from tenure.blockers b where b.chain_id = e.chain_id and b.met)),
removed as materialized (
    select l.id, l.kind, l.queue, l.key, l.chain from live l
    union all
    select f.id, f.kind, f.queue, f.key, f.chain from finished f),
ended as not materialized (
    select r.id, r.kind, r.queue, null::text as what, null::interval as waited, null::interval as ran, r.chain, 'deleted' as ending
      from removed r),
/* include: job_endings */,
removed_keys as (
    delete from tenure.keys k
     using removed g
     where k.kind = g.kind and k.key = g.key and k.job_id = g.id),
removed_progress as (
    delete from tenure.progress p where p.job_id = any (array(select g.id from removed g))),
removed_logs as (
    delete from tenure.logs l where l.job_id = any (array(select g.id from removed g))),
removed_incidents as (
    delete from tenure.incidents n where n.job_id = any (array(select g.id from removed g))),
removed_steps as (
    delete from tenure.steps s where s.job_id = any (array(select g.id from removed g))),
removed_waits as (
    delete from tenure.waits w where w.job_id = any (array(select g.id from removed g))),
removed_blocked as (
    delete from tenure.blocked d where d.job_id = any (array(select g.id from removed g))),
removed_blockers as (
    delete from tenure.blockers b where b.job_id = any (array(select g.id from removed g))),
removed_watches as (
    delete from tenure.watches w where w.job_id = any (array(select g.id from removed g)))
select i.id, g.id is not null as done, r.id is not null as ran,
       i.id in (select a.id from awaited a) as watched, i.id in (select e.id from ended_chains e) as dependants, coalesce(g.kind, j.kind) as kind,
       null::text as undoing
  from unnest(:ids::uuid[]) as i(id)
  left join removed g on g.id = i.id
  left join running r on r.id = i.id
  left join lateral (select j.id, j.kind from tenure.jobs j where j.id = i.id limit 1) j on true
 where g.id is not null or j.id is not null
