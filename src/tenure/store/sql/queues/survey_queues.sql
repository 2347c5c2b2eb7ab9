-- survey_queues: the priorities of pending jobs in these queues, and the kinds among their first jobs that this worker does not know.
-- Jobs in limit groups are left out: they are found by other statements.
-- Steps from priority to priority in the index, and reads a bounded number of jobs of each.
with recursive lanes(queue, priority) as (
    select q.name, (select j.priority from tenure.jobs j where j.position > 0 and j.limit_group is null and /* include: is_pending */ and j.queue = q.name
                     order by j.priority desc, j.position limit 1)
      from json_array_elements_text(:queues::json) as q(name)
    union all
    select l.queue, (select j.priority from tenure.jobs j
                      where j.position > 0 and j.limit_group is null and /* include: is_pending */ and j.queue = l.queue and j.priority < l.priority
                      order by j.priority desc, j.position limit 1)
      from lanes l
     where l.priority is not null)
select l.queue, l.priority,
       (select json_agg(distinct s.kind)::text
          from (select j.kind from tenure.jobs j
                 where j.position > 0 and j.limit_group is null and /* include: is_pending */ and j.queue = l.queue and j.priority = l.priority
                 order by j.position limit 100) s
         where s.kind <> all (:kinds::text[])) as unknown
  from lanes l
 where l.priority is not null
