-- limit_group_line: the limit group of a job under one limit. Line breaks separate the groups of a job. A long key is cut, and a
-- digest of the whole key keeps it distinct: sha256, because md5 fails on servers in FIPS mode.
-- Its body is parsed when it is created, so that it does not depend on the session's search_path. A search_path of its own would keep
-- the planner from inlining it.
create or replace function tenure.limit_group_line(name text, key text, otherwise text, input jsonb) returns text
language sql immutable parallel safe
return (
    select name || case when key is null then ''
                        else '/' || key || '=' || translate(case when length(w.word) <= 100 then w.word
                                                                 else left(w.word, 60) || '~' || left(encode(sha256(convert_to(w.word, 'UTF8')), 'hex'), 32)
                                                            end, E'\r\n', '  ') end
      from (select coalesce(input #>> string_to_array(key, '.'), otherwise, '') as word) w);
