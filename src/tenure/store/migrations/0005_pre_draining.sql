-- Draining workers.

-- Once set, the worker claims nothing until it is null again. It renews its lease and finishes what it runs.
alter table tenure.workers add column draining_at timestamptz;
