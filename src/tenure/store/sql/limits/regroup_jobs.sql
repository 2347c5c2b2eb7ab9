-- regroup_jobs: updates the limit groups of pending jobs in these queues that were computed under other rules, at most :limit.
-- Jobs that are no longer limited keep their position, so their workers look again below their cursors.
--   only  null, or the ids to restrict it to; peek: changes nothing, and returns the ids as JSON
-- Returns the number of jobs changed, whether there may be more, and with peek the ids.
with recursive walk(queue, limit_group, kind, stale, step) as (
    select q.name, n.*, 1
      from unnest(:queues::text[]) as q(name)
     cross join lateral (
        select j.limit_group, j.kind, j.limit_group is distinct from tenure.limit_group_of(j.kind, j.queue, j.input) as stale
          from tenure.jobs j
         where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = q.name and j.limit_group > ''
         order by j.limit_group, j.kind, coalesce(j.capability, ''), (j.crashes >= 2)
         limit 1) n
    union all
    select w.queue, n.*, w.step + 1
      from walk w
     cross join lateral (
        select j.limit_group, j.kind, j.limit_group is distinct from tenure.limit_group_of(j.kind, j.queue, j.input) as stale
          from tenure.jobs j
         where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = w.queue and (j.limit_group, j.kind) > (w.limit_group, w.kind)
         order by j.limit_group, j.kind, coalesce(j.capability, ''), (j.crashes >= 2)
         limit 1) n
     where w.step < 10000),
picked as materialized (
    select j.tid, j.id
      from (select w.queue, w.limit_group, w.kind from walk w where w.stale limit :limit::integer) w
     cross join lateral (
        select j.ctid as tid, j.id
          from tenure.jobs j
         where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = w.queue and j.limit_group = w.limit_group and j.kind = w.kind
           and (:only::uuid[] is null or j.id = any (:only::uuid[]))
         limit :limit::integer
           for no key update skip locked) j
     limit :limit::integer),
regrouped as (
    update tenure.jobs j
       set limit_group = tenure.limit_group_of(j.kind, j.queue, j.input)
      from picked p
     where j.ctid = p.tid and not :peek::boolean
    returning j.queue, j.limit_group),
announced_queues as (
    insert into tenure.queues as q (name, returns)
    select distinct r.queue, 1 from regrouped r where r.limit_group is null
    on conflict (name) do update set returns = q.returns + 1)
select (select count(*) from regrouped) as changed, (select count(*) from picked) >= :limit::integer as more,
       (select json_agg(p.id)::text from picked p where :peek::boolean) as peeked
