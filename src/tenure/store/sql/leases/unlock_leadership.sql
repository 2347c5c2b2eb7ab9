-- unlock_leadership: releases the advisory lock of the strategy `advisory`, in a session that is also used for other work.
-- Returns whether it was held.
select pg_advisory_unlock(:key::bigint)
