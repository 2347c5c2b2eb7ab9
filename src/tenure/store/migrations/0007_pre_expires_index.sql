-- outside a transaction
-- Finds jobs that have expired. No claim changes this column.
drop index concurrently if exists tenure.jobs_expiring;
create index concurrently jobs_expiring on tenure.jobs (expires_at) where expires_at is not null;
