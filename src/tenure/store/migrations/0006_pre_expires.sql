-- Jobs that are not worth running any more when they were not started in time.

-- A job that was never claimed is canceled at this time. Null: it waits for as long as it has to. No claim changes this column.
alter table tenure.jobs add column expires_at timestamptz;
