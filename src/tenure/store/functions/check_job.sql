-- check_job: raises an error for values that no table, index or notification can hold. Returns the kind.
create or replace function tenure.check_job(kind text, queue text, capability text, key text, delay double precision, run_at timestamptz,
                                 timeout double precision) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text := case
        when octet_length(kind) > 200 then format('kind is %s bytes long, at most 200 are allowed: shorten it', octet_length(kind))
        when octet_length(queue) > 200 then format('queue is %s bytes long, at most 200 are allowed: shorten it', octet_length(queue))
        when octet_length(capability) > 200
            then format('capability is %s bytes long, at most 200 are allowed: shorten it', octet_length(capability))
        when octet_length(key) > 200 then format('key is %s bytes long, at most 200 are allowed: use a digest of it', octet_length(key))
        when run_at not between '1970-01-01 00:00:00Z' and '2200-01-01 00:00:00Z'
            then format('run_at is %s, but must lie between the years 1970 and 2200', run_at)
        when delay not between -3155760000 and 3155760000 then format('delay is %s, but must be seconds, at most 100 years of them', delay)
        when timeout not between 0 and 3155760000 then format('timeout is %s, but must be seconds, at most 100 years of them', timeout)
    end;
begin
    if problem is not null then
        raise exception '%', problem using errcode = 'invalid_parameter_value';
    end if;
    return kind;
end
$$;
