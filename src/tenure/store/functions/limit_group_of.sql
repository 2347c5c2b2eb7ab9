-- limit_group_of: the limit groups that such a job belongs to now, the kind's before the queue's. Null: it is not limited.
-- Parsed when it is created, as limit_group_line.
create or replace function tenure.limit_group_of(kind text, queue text, input jsonb) returns text
language sql stable
return (
    select string_agg(tenure.limit_group_line(r.name, r.key, r.otherwise, input), E'\n' order by r.name)
      from tenure.limit_rules r
     where r.name in ('kind:' || kind, 'queue:' || queue));
