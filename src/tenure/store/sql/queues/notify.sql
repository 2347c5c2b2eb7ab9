-- notify: wakes listeners; one statement for many payloads. The commit does not wait for the disk: listeners that miss a notification
-- in a crash of the server find the work by polling.
select count(pg_notify(:channel, p.payload))
  from json_array_elements_text(:payloads::json) as p(payload)
 cross join (select set_config('synchronous_commit', 'off', true)) as relaxed
