-- outside a transaction
-- Counts jobs that are blocked, and workflows that wait for something else than a time. No claim changes these columns.
drop index concurrently if exists tenure.jobs_waiting;
create index concurrently jobs_waiting on tenure.jobs (queue) where position = -2;
