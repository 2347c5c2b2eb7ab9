-- count_live: how many live jobs there are of each queue, kind and state, and since when the oldest of them is there.
select j.queue, j.kind, j.state, count(*) as jobs, min(j.enqueued_at) as oldest_at
  from tenure.jobs j
 group by j.queue, j.kind, j.state
