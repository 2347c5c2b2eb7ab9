-- uuid7: a UUIDv7, for callers that pass no id (psql, triggers, other languages).
-- Parsed when it is created, as limit_group_line.
create or replace function tenure.uuid7() returns uuid
language sql volatile parallel safe
return encode(
    set_bit(set_bit(
        overlay(uuid_send(gen_random_uuid())
            placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
            from 1 for 6),
        52, 1), 53, 1),
    'hex')::uuid;
