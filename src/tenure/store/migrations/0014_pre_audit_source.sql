-- What a call was made with: the dashboard, the API, or a tracker of one job.

-- Null: written by an earlier version.
alter table tenure.audit add column source text;
