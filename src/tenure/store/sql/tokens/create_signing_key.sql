-- create_signing_key: stores the first signing key of an installation; with :rotate, a new one beside the others. Two processes that do
-- this at the same time create two keys, which does no harm: all are accepted.
insert into tenure.signing_keys (id, secret)
select :id::uuid, :secret::text
 where :rotate::boolean or not exists (select from tenure.signing_keys k where k.retired_at is null)
