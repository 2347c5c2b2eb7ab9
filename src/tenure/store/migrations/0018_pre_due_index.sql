-- outside a transaction
-- Counts the due jobs of one queue for tenure.backlog(). By jobs_due, those of other queues would have to be read first, and no process
-- promotes those while all workers are scaled to zero. That queue is not null is always true: it keeps this index from statements that do
-- not name a queue, for which it has the wrong order.
drop index concurrently if exists tenure.jobs_due_queue;
create index concurrently jobs_due_queue on tenure.jobs (queue, run_at) where position = 0 and queue is not null;
