-- notify_after: as notify, right after a commit of our own on the same connection. Nothing is lost if a crash of the server undoes
-- it, so its commit is not waited for on disk.
with relaxed as materialized (
    select set_config('synchronous_commit', 'off', true))
select count(pg_notify(:channel, p.payload)) from relaxed cross join json_array_elements_text(:payloads::json) as p(payload)
