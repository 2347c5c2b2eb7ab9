-- learn_limits: the version of the limits, the limits as they hold and as the code declares them, and whether jobs stand at gates in
-- these queues. One statement, so that they belong together.
select (select c.version from tenure.limit_changes c where c.id),
       (select coalesce(json_object_agg(l.name, l.declared), '{}')::text from tenure.limits l),
       (select coalesce(json_agg(r.name), '[]')::text from tenure.limit_rules r),
       exists (select from unnest(:queues::text[]) as q(name)
                cross join lateral (
                    select 1 from tenure.jobs j
                     where j.state = 'pending' and j.gate is not null and j.queue = q.name and j.gate > '' limit 1) j)
