-- notify: wakes whoever listens; one statement for many payloads.
select count(pg_notify(:channel, p.payload)) from json_array_elements_text(:payloads::json) as p(payload)
