-- find_queues: the queues of which something is known beyond their jobs: paused since when, by whom, and why.
select q.name, q.paused_at, q.paused_by, q.pause_reason from tenure.queues q
