-- delete_schedule: removes a schedule that no code declares any more. Its jobs go on; what became of its times is kept as long as
-- ever. Returns its name; nothing if it is not there or code declares it.
delete from tenure.schedules s
 where s.name = :name::text and (s.owner is null or s.retired_at is not null)
returning s.name
