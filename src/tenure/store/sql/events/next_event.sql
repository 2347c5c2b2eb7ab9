-- next_event: the next event of a name and key behind a position. Events that the resolver has not placed yet follow later.
select e.payload::text as payload, e.position
  from tenure.events e
 where e.name = :name::text and e.key = :key::text and e.position > :after::bigint
 order by e.position
 limit 1
