-- revoke_tokens: ends the tokens with this id or name. Their sessions end with them. Returns the ids of those that were in force.
--   source  with what they are revoked, for an entry of each in the audit log; null: no entry
with revoked as (
    update tenure.tokens t
       set revoked_at = clock_timestamp(), revoked_by = :by::text
     where (t.id::text = :which::text or (t.name = :which::text and t.purpose = 'api')) and t.revoked_at is null
    returning t.id, t.name),
recorded as (
    insert into tenure.audit (request_id, phase, actor, source, action, subject, after, status)
    select gen_random_uuid(), 'finished', coalesce(:by::text, session_user::text), :source::text, 'revoke_token', r.name,
           jsonb_build_object('id', r.id), 200
      from revoked r
     where :source::text is not null)
select r.id from revoked r
