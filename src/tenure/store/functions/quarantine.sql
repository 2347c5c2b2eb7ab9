-- quarantine: the error of a job that has crashed so often that it becomes a dead letter; null if it may run again. `why` describes what
-- happened, with {n} for the number of crashes. The only place that knows when a job is quarantined.
create or replace function tenure.quarantine(crashes integer, most integer, why text) returns text
language sql immutable parallel safe
return case when crashes >= most then 'quarantined: ' || replace(why, '{n}', crashes::text) end;
