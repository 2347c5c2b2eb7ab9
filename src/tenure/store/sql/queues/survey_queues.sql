-- survey_queues: which priorities wait in these queues, and which kinds among their first jobs does this worker not know?
-- What stands at a gate is left out: it is found by other ways.
-- Steps from priority to priority by the index; looks at a bounded number of jobs of each.
with recursive lanes(queue, priority) as (
    select q.name, (select j.priority from tenure.jobs j where j.state = 'pending' and j.gate is null and j.queue = q.name
                     order by j.priority desc, j.position limit 1)
      from json_array_elements_text(:queues::json) as q(name)
    union all
    select l.queue, (select j.priority from tenure.jobs j where j.state = 'pending' and j.gate is null and j.queue = l.queue and j.priority < l.priority
                      order by j.priority desc, j.position limit 1)
      from lanes l
     where l.priority is not null)
select l.queue, l.priority,
       (select json_agg(distinct s.kind)::text
          from (select j.kind from tenure.jobs j
                 where j.state = 'pending' and j.gate is null and j.queue = l.queue and j.priority = l.priority
                 order by j.position limit 100) s
         where s.kind <> all (:kinds::text[])) as unknown
  from lanes l
 where l.priority is not null
