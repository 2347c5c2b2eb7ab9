-- unlock_leadership: releases the advisory lock of the strategy `advisory`, in a session that is used for other work, too.
-- Returns whether it was held.
select pg_advisory_unlock(:key::bigint)
