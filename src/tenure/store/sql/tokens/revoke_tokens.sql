-- revoke_tokens: ends the tokens with this id or name. Their sessions end with them. Returns the ids of those that were in force.
update tenure.tokens t
   set revoked_at = clock_timestamp(), revoked_by = :by::text
 where (t.id::text = :which::text or (t.name = :which::text and t.purpose = 'api')) and t.revoked_at is null
returning t.id
