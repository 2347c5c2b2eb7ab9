-- touch_token: notes that the token was used, at most every five minutes.
update tenure.tokens t
   set last_used_at = clock_timestamp()
 where t.id = :id::uuid and coalesce(t.last_used_at < clock_timestamp() - interval '5 minutes', true)
