-- Which worker held a job when it crashed or lost its lease.

-- The name of the worker, or its host and process id: its own row is deleted when its jobs have been requeued. Null: see tenure.workers.
alter table tenure.incidents add column worker text;
