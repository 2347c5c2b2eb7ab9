-- create_token: stores the hash of a new token. Returns nothing. A session is refused if its api token has been revoked meanwhile.
--   source  with what it is created, for an entry in the audit log; null: no entry
with created as (
    insert into tenure.tokens (id, hash, name, purpose, scope, queues, kinds, rate, created_by, expires_at, parent_id)
    select :id::uuid, :hash::text, :name::text, :purpose::text, :scope::text, :queues::text[], :kinds::text[], :rate::float8, :by::text,
           clock_timestamp() + make_interval(secs => :seconds::float8), :parent_id::uuid
     where :parent_id::uuid is null
        or exists (select from tenure.tokens p where p.id = :parent_id::uuid and p.revoked_at is null)
    returning *)
insert into tenure.audit (request_id, phase, actor, source, action, subject, after, status)
select c.id, 'finished', coalesce(c.created_by, session_user::text), :source::text, 'create_token', c.name,
       jsonb_strip_nulls(jsonb_build_object('id', c.id, 'scope', c.scope, 'queues', c.queues, 'kinds', c.kinds, 'rate', c.rate,
                                            'expires_at', c.expires_at)), 200
  from created c
 where :source::text is not null
