-- outside a transaction
-- Counts workflows that are held until a person decides. Other jobs that wait, of which there may be a million, are not in it.
drop index concurrently if exists tenure.jobs_held;
create index concurrently jobs_held on tenure.jobs (kind) where position = -2 and system ? 'held';
