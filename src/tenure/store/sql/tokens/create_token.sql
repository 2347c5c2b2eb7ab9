-- create_token: stores the hash of a new token. Returns nothing. A session is refused if its api token has been revoked meanwhile.
insert into tenure.tokens (id, hash, name, purpose, scope, queues, kinds, rate, created_by, expires_at, parent_id)
select :id::uuid, :hash::text, :name::text, :purpose::text, :scope::text, :queues::text[], :kinds::text[], :rate::float8, :by::text,
       clock_timestamp() + make_interval(secs => :seconds::float8), :parent_id::uuid
 where :parent_id::uuid is null
    or exists (select from tenure.tokens p where p.id = :parent_id::uuid and p.revoked_at is null)
