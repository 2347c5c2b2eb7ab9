-- count_live: the number of live jobs of each queue, kind and state, and the time of the oldest.
select j.queue, j.kind, j.state, count(*) as jobs, min(j.enqueued_at) as oldest_at
  from tenure.jobs j
 group by j.queue, j.kind, j.state
