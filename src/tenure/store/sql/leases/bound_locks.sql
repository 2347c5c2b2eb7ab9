-- bound_locks: limits how long each statement of this transaction waits for a lock, to :milliseconds. For connections through a
-- transaction pooler, which have no session settings.
select set_config('lock_timeout', :milliseconds::text, true)
