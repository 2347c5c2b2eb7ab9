-- Schedules whose jobs expire.

-- Seconds after which a job of the schedule is canceled if it was not started. Null: it waits for as long as it has to.
alter table tenure.schedules add column expires double precision;
