-- other_input: whether a digest is that of another input. Digests of earlier versions are md5; if the server lacks it, this returns false.
create or replace function tenure.other_input(digest text, input jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if length(digest) = 64 then
        return digest <> tenure.input_digest(input);
    end if;
    return digest <> md5(coalesce(input, '{}')::text);
exception when others then
    return false;
end
$$;
