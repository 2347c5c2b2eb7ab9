-- count_held_workflows: workflows that are held until a person decides, by kind: how many, the id of one of them, and why that one is held.
-- Looks at 1000 of them at most, by an index that has no other jobs.
select h.kind, count(*) as jobs, (min(h.id::text)) as example, (array_agg(h.reason order by h.id::text))[1] as reason
  from (select j.kind, j.id, j.system ->> 'held' as reason from tenure.jobs j where j.position = -2 and j.system ? 'held' limit 1000) h
 group by h.kind
 order by h.kind
