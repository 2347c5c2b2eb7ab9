-- list_workflows: the newest jobs of these kinds, live and finished, at most :limit, newest first.
--   kinds   JSON: the names of workflows
--   queues  null, or the queues to restrict it to; states: the same for states
-- No index of live jobs begins with the kind, so that claims need not maintain one. Workflows are few among them and may wait for weeks, so
-- they are looked for where they can be: among the newest live jobs, among those that wait for something other than a time, among the newest
-- workflows that have recorded a step, and among the dead letters of their kinds. Each part reads a bounded number of rows.
with recursive streams as materialized (
    select s.name, greatest(5000 / count(*) over (), 1) as share
      from jsonb_array_elements_text(:kinds::jsonb) as s(name)),
begun(id, place) as (
    (select s.job_id, 1 from tenure.steps s order by s.job_id desc limit 1)
    union all
    select n.job_id, b.place + 1
      from begun b
     cross join lateral (select s.job_id from tenure.steps s where s.job_id < b.id order by s.job_id desc limit 1) n
     where b.place < 1000),
found as (
    select x.id, x.kind, x.queue, x.state
      from (select j.id, j.kind, j.queue, j.state from tenure.jobs j order by j.id desc limit 5000) x
    union all
    select x.id, x.kind, x.queue, x.state
      from (select j.id, j.kind, j.queue, j.state from tenure.jobs j where j.position = -2 order by j.queue limit 5000) x
    union all
    select j.id, j.kind, j.queue, j.state
      from begun b
     cross join lateral (select j.id, j.kind, j.queue, j.state from tenure.jobs j where j.id = b.id limit 1) j
    union all
    select x.id, x.kind, x.queue, x.state
      from streams s
     cross join lateral (
        select j.id, j.kind, j.queue, j.state
          from tenure.jobs j
         where j.position = -1 and (j.kind, j.id) <= (s.name, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
           and (j.kind, j.id) >= (s.name, '00000000-0000-0000-0000-000000000000'::uuid)
         order by j.kind desc, j.id desc
         limit (select s.share from streams s limit 1)) x
    union all
    select x.id, x.kind, x.queue, x.state
      from streams s
     cross join lateral (
        select h.id, h.kind, h.queue, h.state
          from tenure.history h
         where (h.kind, h.id) <= (s.name, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
           and (h.kind, h.id) >= (s.name, '00000000-0000-0000-0000-000000000000'::uuid)
         order by h.kind desc, h.id desc
         limit (select s.share from streams s limit 1)) x)
select distinct f.id
  from found f
 where f.kind in (select s.name from streams s)
   and (:queues::text[] is null or f.queue = any (:queues::text[]))
   and (:states::text[] is null or f.state = any (:states::text[]))
 order by f.id desc
 limit :limit::integer
