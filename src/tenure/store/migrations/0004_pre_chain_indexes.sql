-- outside a transaction
-- Links of a chain after the first. No claim changes this column.
drop index concurrently if exists tenure.jobs_chain;
create index concurrently jobs_chain on tenure.jobs (chain_id, id) where chain_id is not null;
