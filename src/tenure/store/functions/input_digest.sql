-- input_digest: the digest of a job's input. Not md5, which a server in FIPS mode lacks.
create or replace function tenure.input_digest(input jsonb) returns text
language sql stable
as $$
    select encode(sha256(convert_to(coalesce(input, '{}')::text, 'UTF8')), 'hex')
$$;
