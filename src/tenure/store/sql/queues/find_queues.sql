-- find_queues: the queues that have a row: since when they are paused, by whom, and why.
select q.name, q.paused_at, q.paused_by, q.pause_reason from tenure.queues q
