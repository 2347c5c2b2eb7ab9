-- end_blocked: blocked, waiting -> canceled for jobs with a chain that did not complete (on_failure is not run), failed for jobs that wait
-- for themselves, and completed or failed for groups whose members have all ended. Run by a duty: the statement itself checks holder and term.
--   A workflow that has something to undo becomes pending instead: how it ends is recorded as the mark of its rollback, and its next run
--   undoes what it has done.
--   The output of a group is the list of the outputs of its members, if it has at most :most members and they have at most :most_bytes in
--   all. A group has failed if one of its members has not completed by now: a dead letter may have been replayed meanwhile. Its output is
--   in history until the resolver has seen its new end.
--   only  null, or the ids to restrict it to; peek: changes nothing, and returns the ids that it would end
-- A job that another session has locked is left for the next round. Rows of jobs that do not wait any more, or are held, are left out from
-- then on.
-- Returns whether the term holds, the number of rows that were handled, the queues of workflows that are to be rolled back, for the caller to
-- announce, and the jobs that ended and these workflows as JSON, or with peek the ids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
ready as materialized (
    select d.ctid as row, d.job_id, d.failed, d.error, d.total, d.failed is not null and d.on_failure <> 'run' as cancels
      from tenure.blocked d
     where d.missing = 0 and exists (select from leader) and (:only::uuid[] is null or d.job_id = any (:only::uuid[]))
       -- Not those that unblock_jobs is to move, and could not: they must not hide the others.
       and (d.error is not null or (d.failed is not null and d.on_failure <> 'run')
            or coalesce((select j.kind = 'tenure.group' from tenure.jobs j
                          where j.id = d.job_id and j.state in ('blocked', 'waiting') and not coalesce(j.system ? 'held', false) limit 1), true))
     order by d.job_id
     limit :limit::integer),
found as materialized (
    select r.row, j.tid, j.id, j.fence as last_fence, j.undoes, m.failed, c.state as final, c.error as cause, c.output
      from ready r
     cross join lateral (
        select j.ctid as tid, j.id, j.kind, j.fence, coalesce(j.system ? 'undo' and not j.system ? 'canceling', false) as undoes
          from tenure.jobs j
         where j.id = r.job_id and j.state in ('blocked', 'waiting')
           and (r.error is not null or j.kind = 'tenure.group' or r.cancels)
         limit 1
           for update skip locked) j
     cross join lateral (
        select case when j.kind <> 'tenure.group' or r.failed is null then r.failed
                    else (select b.chain_id
                            from (select b.chain_id, b.number from tenure.blockers b where b.job_id = r.job_id order by b.job_id, b.number) b
                           cross join lateral (
                              select e.state from tenure.chain_endings e where e.chain_id = b.chain_id limit 1) e
                           where e.state <> 'completed'
                           order by b.number limit 1) end as failed) m
     cross join lateral (
        select case when r.error is not null then 'failed' when j.kind <> 'tenure.group' then 'canceled'
                    when m.failed is null then 'completed' else 'failed' end as state,
               coalesce(r.error, (
                   select case when j.kind = 'tenure.group' then 'a member of the group did not complete: ' else 'a job that it waits for did not complete: ' end
                          || 'chain ' || e.chain_id || ' (' || coalesce(e.kind || ', ', '')
                          || case e.state when 'deleted' then 'deleted, or a dead letter that was older than its retention' else e.state end
                          || ')' || coalesce(E'\n' || e.error, '')
                     from tenure.chain_endings e where e.chain_id = m.failed limit 1)) as error,
               case when j.kind = 'tenure.group' and m.failed is null and r.total <= :most::integer then
                   case when (select coalesce(sum(octet_length(e.output::text)), 0)
                                from tenure.blockers b
                               cross join lateral (
                                  select case when e.resolved then e.output
                                              else coalesce((select h.output from tenure.history h where h.id = e.job_id limit 1), e.output) end as output
                                    from tenure.chain_endings e where e.chain_id = b.chain_id limit 1) e
                               where b.job_id = r.job_id) <= :most_bytes::bigint
                        then (select jsonb_agg(coalesce(e.output, 'null') order by b.number)
                                from (select b.chain_id, b.number from tenure.blockers b where b.job_id = r.job_id order by b.job_id, b.number) b
                               cross join lateral (
                                  select case when e.resolved then e.output
                                              else coalesce((select h.output from tenure.history h where h.id = e.job_id limit 1), e.output) end as output
                                    from tenure.chain_endings e where e.chain_id = b.chain_id limit 1) e) end end as output) c
     where not :peek::boolean),
taken as (
    -- Returns how each ends: to join the deleted rows with those that were found would compare each with all of them.
    delete from tenure.jobs j
     using found f
     where j.ctid = f.tid and not f.undoes
    returning j.*, coalesce(:now::timestamptz, clock_timestamp()) as ended_at, f.row, f.failed, f.final, f.cause, f.output),
placed as materialized (
    select f.*, nextval('tenure.job_position') as position from (select f.* from found f where f.undoes order by f.id) f),
undoing as (
    update tenure.jobs j
       set state = 'pending', position = p.position, run_at = null,
           limit_group = case when j.limit_group is not null then tenure.limit_group_of(j.kind, j.queue, j.input) end
      from placed p
     where j.ctid = p.tid
    returning j.id, j.kind, j.queue, p.row, p.final, p.cause, p.last_fence),
marked as (
    insert into tenure.steps (job_id, name, number, what, state, output, started_at, ended_at, fence)
    select u.id, '(rollback)', n.number, 'rollback', 'done', jsonb_build_object('state', u.final, 'reason', u.cause),
           coalesce(:now::timestamptz, clock_timestamp()), coalesce(:now::timestamptz, clock_timestamp()), u.last_fence
      from undoing u
     cross join lateral (select coalesce(max(s.number), 0) + 1 as number from tenure.steps s where s.job_id = u.id) n
    -- An earlier run began to roll back: that ending stays.
    on conflict (job_id, name) do nothing),
finished as (
    insert into tenure.history (id, started_at, finished_at, state, error, output, /* include: job_columns */)
    select id, started_at, ended_at, final, cause, output, /* include: job_columns */ from taken),
recorded_incidents as (
    insert into tenure.incidents (job_id, at, what, by, error)
    select t.id, t.ended_at, t.final, 'tenure', t.cause from taken t where t.final <> 'completed'),
handled as materialized (
    select t.row, t.failed, true as ends, false as undoes from taken t
     union all
    select u.row, null, false, true from undoing u
     union all
    select r.row, null, false, false
      from ready r
     where r.job_id not in (select t.id from taken t union all select u.id from undoing u)
       and (select j.id from tenure.jobs j
             where j.id = r.job_id and j.state in ('blocked', 'waiting') and not coalesce(j.system ? 'held', false) limit 1) is null),
released as (
    update tenure.blocked d
       set missing = null, error = case when n.undoes then null else d.error end, failed = case when n.ends then n.failed else d.failed end
      from handled n
     where d.ctid = n.row and d.missing = 0 and not :peek::boolean
    returning d.job_id),
ended as not materialized (
    select t.id, t.kind, t.queue, t.final as what, null::interval as waited, null::interval as ran,
           case when t.dependants then coalesce(t.chain_id, t.id) end as chain, t.final as ending
      from taken t),
/* include: job_endings */
select exists (select from leader) as holds, (select count(*) from released) as released,
       (select coalesce(array_agg(distinct u.queue), '{}') from undoing u) as queues,
       (select json_agg(e.job)::text
          from (select json_build_object(
                    'job_id', t.id, 'kind', t.kind, 'queue', t.queue, 'state', t.final, 'error', t.cause,
                    'watched', t.id in (select a.id from awaited a), 'dependants', t.id in (select c.id from ended_chains c)) as job
                  from taken t
                 union all
                select json_build_object('job_id', u.id, 'kind', u.kind, 'queue', u.queue, 'state', 'pending', 'error', null,
                                         'watched', false, 'dependants', false)
                  from undoing u) e) as jobs,
       (select json_agg(r.job_id)::text from ready r where :peek::boolean) as peeked
