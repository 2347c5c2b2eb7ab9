-- explain_job: a job (the columns of find_job), and everything that may prevent it from running.
--   ahead         jobs that are claimed before it by the workers that could run it; jobs that these cannot run do not delay it. Reads
--                 10000 of each sort, and counts up to 1000
--   workers       the number of living workers; of those, how many serve its queue; of those, know its kind; of those, have its
--                 capability; and how many slots the last have, and how many jobs they hold. Those that drain are counted apart: how
--                 many of them could run it
--   limit_groups  its limits, as JSON: how many jobs run and may run, how many may start in how many seconds, in total and for its own
--                 key, and the seconds until the next start is allowed
--   waits         what a workflow waits for, as JSON
--   blocked       what a blocked job waits for, as JSON: the first :blockers chains that have not ended, with their live links
with job as materialized (
    select a.* from tenure.all_jobs a where a.id = :id::uuid limit 1),
own_position as materialized (
    select j.position
      from (select j.position, j.state from tenure.jobs j where j.id = :id::uuid limit 1) j
     where j.state = 'pending'),
live_workers as materialized (
    select w.id, w.concurrency, w.kinds, w.capabilities, w.draining_at is not null as draining,
           w.queues ? a.queue as queue,
           w.queues ? a.queue and w.kinds ? a.kind as kind,
           w.queues ? a.queue and w.kinds ? a.kind
               and (a.capability is null or w.capabilities ? a.capability) as capability
      from tenure.workers w
     cross join job a
     where w.died_at is null and w.expires_at > clock_timestamp()),
matching_workers as (
    select count(*) as workers, count(*) filter (where w.queue) as queue, count(*) filter (where w.kind) as kind,
           count(*) filter (where w.capability) as capability, count(*) filter (where w.capability and w.draining) as draining,
           coalesce(sum(w.concurrency) filter (where w.capability), 0) as slots,
           coalesce(sum((select count(*) from tenure.held_jobs h where h.worker_id = w.id)) filter (where w.capability), 0) as held
      from live_workers w),
runnable as materialized (
    select array(select distinct k.name from live_workers w cross join lateral jsonb_array_elements_text(w.kinds) as k(name)
                  where w.capability) as kinds,
           array(select distinct c.name from live_workers w cross join lateral jsonb_array_elements_text(w.capabilities) as c(name)
                  where w.capability) as capabilities),
jobs_ahead as (
    select count(*) as jobs
      from (select s.crashes, s.kind, s.capability from job a, own_position p, lateral (
                select j.crashes, j.kind, j.capability from tenure.jobs j
                 where j.position > 0 and j.limit_group is null and j.state = 'pending' and a.limit_group is null and j.queue = a.queue
                   and j.priority > a.priority
                 limit 10000) s
            union all
            select s.crashes, s.kind, s.capability from job a, own_position p, lateral (
                select j.crashes, j.kind, j.capability from tenure.jobs j
                 where j.position > 0 and j.limit_group is null and j.state = 'pending' and a.limit_group is null and j.queue = a.queue
                   and j.priority = a.priority
                   and j.position < p.position
                 limit 10000) s
            union all
            select s.crashes, s.kind, s.capability from job a, own_position p, lateral (
                select j.crashes, j.kind, j.capability from tenure.jobs j
                 where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = a.queue and j.limit_group = a.limit_group
                   and j.kind = a.kind
                   and (j.priority > a.priority or (j.priority = a.priority and j.position < p.position))
                 limit 10000) s) f
     cross join runnable b
     cross join job a
     -- Jobs that were in two crashes run separately from all others.
     where (f.crashes >= 2) = (a.crashes >= 2)
       and f.kind = any (b.kinds) and (f.capability is null or f.capability = any (b.capabilities))),
limit_groups as (
    select json_agg(json_build_object(
               'name', r.name, 'line', g.line,
               'running', h.jobs, 'most', r.concurrency, 'running_of_key', h.of_key, 'most_of_key', r.concurrency_per_key,
               'rate', r.rate, 'seconds', r.rate_seconds, 'wait', s.wait,
               'rate_of_key', r.rate_per_key, 'seconds_of_key', r.rate_per_key_seconds, 'wait_of_key', k.wait) order by r.name)::text as details
      from job a
     cross join lateral unnest(string_to_array(a.limit_group, E'\n')) as g(line)
      join tenure.limit_rules r on g.line = r.stem or (r.key is not null and starts_with(g.line, r.stem))
     cross join lateral (
        select count(*) as jobs, count(*) filter (where g.line = any (string_to_array(j.held_group, E'\n'))) as of_key
          from tenure.jobs j
         where j.held_group > '' and j.held_group is not null
           and r.name in ('kind:' || j.kind, 'queue:' || j.queue)) h
     cross join lateral (
        select case when sum(s.jobs) >= r.rate
                    then extract(epoch from min(s.ended) - clock_timestamp())::float8 + r.rate_seconds end as wait
          from tenure.starts s
         where s.limit_group = r.name and s.ended > clock_timestamp() - make_interval(secs => r.rate_seconds)) s
     cross join lateral (
        select case when sum(s.jobs) >= r.rate_per_key
                    then extract(epoch from min(s.ended) - clock_timestamp())::float8 + r.rate_per_key_seconds end as wait
          from tenure.starts s
         where s.limit_group = g.line and s.ended > clock_timestamp() - make_interval(secs => r.rate_per_key_seconds)) k)
select a.id, a.kind, a.queue, a.state, a.priority, a.capability, a.attempt, a.max_attempts, a.crashes, a.fence, a.worker_id,
       a.enqueued_at, a.run_at, a.started_at, a.finished_at, a.error, a.input::text, a.output::text,
       a.timeout, a.key, a.parent_id, a.enqueued_by, a.auth::text, a.meta::text, a.system::text, a.limit_group,
       a.progress_percent, a.progress_message, a.failed_at, a.chain_id, a.next_id, a.expires_at, a.heartbeat_at,
       clock_timestamp() as now, a.lease_expires_at, w.host, w.pid, w.name as worker_name, q.paused_at, q.paused_by,
       q.pause_reason,
       exists (select from tenure.leases l where l.name = 'stager' and l.expires_at > clock_timestamp()) as stager,
       s.workers, s.queue as for_queue, s.kind as for_kind, s.capability as for_capability, s.draining, s.slots, s.held,
       least(b.jobs, 1000) as ahead, g.details as limit_groups,
       exists (select from tenure.leases l where l.name = 'resolver' and l.expires_at > clock_timestamp()) as resolver,
       (select json_build_object(
                   'total', d.total, 'missing', d.missing - d.open::integer, 'open', d.open, 'on_failure', d.on_failure, 'failed', d.failed, 'chains', (
                   select json_agg(json_build_object(
                              'chain_id', m.chain_id, 'job_id', j.id, 'kind', coalesce(j.kind, e.kind), 'state', coalesce(j.state, e.state)) order by m.number)
                     from (select m.chain_id, m.number from tenure.blockers m
                            where m.job_id = a.id and not m.met order by m.job_id, m.number limit :blockers::integer) m
                     left join lateral (
                        select j.id, j.kind, j.state from tenure.jobs j where j.id = m.chain_id
                         union all
                        select j.id, j.kind, j.state from tenure.jobs j where j.chain_id = m.chain_id
                         limit 1) j on true
                     left join lateral (
                        select e.kind, e.state from tenure.chain_endings e where e.chain_id = m.chain_id limit 1) e on j.id is null))::text
          from tenure.blocked d
         where d.job_id = a.id and a.state in ('blocked', 'waiting')) as blocked,
       (select json_agg(json_build_object(
                   'name', s.name, 'what', s.what, 'state', s.state, 'due_at', s.due_at, 'event', s.output ->> 'event', 'key', s.output ->> 'key')
                   order by s.due_at, s.number)::text
          from tenure.steps s
         where s.job_id = a.id and a.state = 'waiting' and s.state in ('open', 'retry') and s.what <> 'status') as waits
  from job a
 cross join matching_workers s
 cross join jobs_ahead b
 cross join limit_groups g
  left join tenure.workers w on w.id = a.worker_id
  left join tenure.queues q on q.name = a.queue
