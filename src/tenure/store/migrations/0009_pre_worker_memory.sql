-- How much memory a worker process uses.

-- Megabytes of resident memory at the last renewal. Null: its supervisor has not measured it yet, or it runs in a process of yours.
alter table tenure.workers add column memory_mb real;
