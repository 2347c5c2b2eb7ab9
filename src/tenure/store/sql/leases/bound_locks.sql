-- bound_locks: no statement of this transaction waits for a lock for longer than :milliseconds. For connections through a transaction
-- pooler, which have no session settings.
select set_config('lock_timeout', :milliseconds::text, true)
