-- notify: wakes listeners, with one statement for all payloads. The commit does not wait for the disk: listeners that miss a
-- notification because the server crashed find the work by polling.
select count(pg_notify(:channel, p.payload))
  from json_array_elements_text(:payloads::json) as p(payload)
 cross join (select set_config('synchronous_commit', 'off', true)) as relaxed
