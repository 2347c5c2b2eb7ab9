-- unlock_leadership: gives the advisory lock of those who lead by it back, for a session that goes on with other work.
-- Returns whether it was held.
select pg_advisory_unlock(:key::bigint)
