-- delete_schedule: removes a schedule that no code declares any more. Its jobs continue, and its ticks are kept for as long as any
-- others. Returns its name. No row: it does not exist, or code declares it.
delete from tenure.schedules s
 where s.name = :name::text and (s.owner is null or s.retired_at is not null)
returning s.name
