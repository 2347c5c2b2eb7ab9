-- input_digest: the digest of a job's input. Not md5, which a server in FIPS mode lacks. Parsed when it is created, so that no
-- search_path of the caller changes what it calls.
create or replace function tenure.input_digest(input jsonb) returns text
language sql stable
return encode(sha256(convert_to(coalesce(input, '{}')::text, 'UTF8')), 'hex');
