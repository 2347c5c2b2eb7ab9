-- notify_after: like notify, right after our own commit on the same connection. Nothing is lost if a crash of the server undoes it, so
-- its commit does not wait for the disk.
with relaxed as materialized (
    select set_config('synchronous_commit', 'off', true))
select count(pg_notify(:channel, p.payload)) from relaxed cross join json_array_elements_text(:payloads::json) as p(payload)
