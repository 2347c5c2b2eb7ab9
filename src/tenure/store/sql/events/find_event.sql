-- find_event: the first event of a name and key, in the order in which they were committed: the same one at every call, also if an event with
-- a smaller id is committed later. One that the resolver has not placed yet is not found: the resolver wakes the workflow that waits for it.
select e.payload::text as payload, e.position
  from tenure.events e
 where e.name = :name::text and e.key = :key::text and e.position > 0
 order by e.position
 limit 1
