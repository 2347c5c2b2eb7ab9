-- arm_blockers: makes sure that the ends of chains that jobs wait for cannot be missed. Run by a duty: the statement itself checks holder
-- and term. It sees only blockers that are committed, whose callers hold no locks any more.
--   A chain with a live link: the link gets the flag `dependants`. A statement that ends it at the same moment either waits for this one
--   and sees the flag, or was first: then the link is gone, the update finds nothing, and the blocker is looked at again in the next round.
--   A chain that has ended, or whose live link is a dead letter: its ending is stored, or looked at once more. One that does not exist any
--   more was deleted.
--   A job that waits, over other jobs that wait, for its own chain, can never run: it is marked, and fails. Only a later link of a chain, or
--   a job that waits while it runs, can close such a circle: the chains that a new job names exist before it. It is looked for among the jobs
--   that wait for its chain: they are few, while it may wait for thousands of chains itself.
--   after  null, or the job after which to begin: those before it are left for later, because links that they wait for are locked
--   only  null, or the waiting jobs to restrict it to; peek: changes nothing, and returns the waiting jobs that it would look at
-- A locked pending job may be skipped by a claim, so the workers of its queue look again below their cursors. A link that another session
-- has locked is left for the next round.
-- Returns whether the term holds, the number of blockers armed, how many were left, the last job if there are more, the queues to announce,
-- and with peek the jobs.
with recursive leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
fresh as materialized (
    select b.ctid as tid, b.chain_id, b.job_id
      from tenure.blockers b
     where not b.armed and exists (select from leader) and (:only::uuid[] is null or b.job_id = any (:only::uuid[])) and not :peek::boolean
       and (:after::uuid is null or b.job_id > :after::uuid)
     order by b.job_id
     limit :limit::integer
       for update skip locked),
-- Jobs, not blockers: one that has thousands of them must not hide the others.
peeked as materialized (
    select distinct b.job_id
      from tenure.blockers b
     where not b.armed and exists (select from leader) and (:only::uuid[] is null or b.job_id = any (:only::uuid[])) and :peek::boolean
       and (:after::uuid is null or b.job_id > :after::uuid)
     order by b.job_id
     limit :limit::integer),
chains as materialized (
    select distinct f.chain_id as id from fresh f),
live as materialized (
    select c.id as chain_id, j.id, j.kind, j.state, j.dependants
      from chains c
     cross join lateral (
        select j.id, j.kind, j.state, j.dependants from tenure.jobs j where j.id = c.id
         union all
        select j.id, j.kind, j.state, j.dependants from tenure.jobs j where j.chain_id = c.id
         limit 1) j),
locked as materialized (
    select l.chain_id, j.tid, j.id, j.kind, j.queue, j.state
      from live l
     cross join lateral (
        select j.ctid as tid, j.id, j.kind, j.queue, j.state from tenure.jobs j where j.id = l.id
         limit 1 for no key update skip locked) j
     where l.dependants is not true),
flagged as (
    update tenure.jobs j set dependants = true where j.ctid = any (array(select k.tid from locked k)) returning j.id),
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select distinct k.queue, 1 from locked k where k.state = 'pending'
    on conflict (name) do update set returns = q.returns + 1
    returning q.name),
endings as (
    insert into tenure.chain_endings (chain_id, job_id, kind, state)
    select c.id, h.id, h.kind, coalesce(h.state, 'deleted')
      from chains c
      left join lateral (
        select h.id, h.kind, h.state from tenure.history h where h.id = c.id and h.next_id is null
         union all
        select h.id, h.kind, h.state from tenure.history h where h.chain_id = c.id and h.next_id is null
         limit 1) h on true
     where c.id not in (select l.chain_id from live l)
     union all
    select k.chain_id, k.id, k.kind, k.state from locked k where k.state = 'dead_letter' and k.id in (select f.id from flagged f)
     union all
    select l.chain_id, l.id, l.kind, l.state from live l where l.state = 'dead_letter' and l.dependants
    -- What the chain's own end has stored stays.
    on conflict (chain_id) do update set resolved = false
    returning chain_id),
armed as (
    update tenure.blockers b
       set armed = true
      from fresh f
     where b.ctid = f.tid
       and f.chain_id in (select e.chain_id from endings e
                          union all select l.chain_id from live l where l.dependants
                          union all select k.chain_id from locked k where k.id in (select g.id from flagged g))
    returning b.job_id),
walk (job_id, chain) as (
    select f.job_id, j.chain
      from (select distinct f.job_id from fresh f) f
     cross join lateral (
        select coalesce(j.chain_id, j.id) as chain from tenure.jobs j
         where j.id = f.job_id and (j.chain_id is not null or j.state = 'waiting') limit 1) j
     union
    select w.job_id, j.chain
      from walk w
     cross join lateral (select b.job_id from tenure.blockers b where b.chain_id = w.chain and not b.met offset 0) b
     cross join lateral (
        select coalesce(j.chain_id, j.id) as chain from tenure.jobs j
         where j.id = b.job_id and j.state in ('blocked', 'waiting') limit 1) j),
circles as (
    update tenure.blocked d
       set missing = 0, error = format('it can never run: it waits for chain %s, which waits for the chain of this job', c.first)
      from (select distinct on (f.job_id) f.job_id, f.chain_id as first
              from fresh f
             -- Not a join, which would compare each with all of them: the links of workers do not use hash joins.
             where ((f.job_id, f.chain_id) in (select w.job_id, w.chain from walk w)) is true
             order by f.job_id) c
     where d.job_id = c.job_id and d.missing > 0)
select exists (select from leader) as holds, (select count(*) from armed) as armed,
       (select count(*) from fresh) - (select count(*) from armed) as left_over,
       (select f.job_id from fresh f where (select count(*) from fresh) = :limit::integer order by f.job_id desc limit 1) as next,
       (select coalesce(array_agg(q.name), '{}') from announced_queues q) as queues,
       case when :peek::boolean then (select json_agg(p.job_id)::text from peeked p) end as peeked
