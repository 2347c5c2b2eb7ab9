-- find_signing_keys: the secrets that sign access to single jobs, the one that signs first.
select k.id, k.secret from tenure.signing_keys k where k.retired_at is null order by k.created_at desc, k.id
