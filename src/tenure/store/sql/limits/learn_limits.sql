-- learn_limits: the version of the limits; the limits in force and as declared in code; whether jobs wait in limit groups in these
-- queues, and whether some wait in groups of limits that no longer exist. One statement, so that all of it is from one snapshot.
--   The latter were enqueued under a limit, and were scheduled or not committed when it was removed: no claim searches for them. They
--   are found by searching between the limits in force, with one index probe per gap. The name of a group is the name of its limit, alone
--   or followed by a line break or a slash.
with in_force as materialized (
    select r.name collate "C" as name from tenure.limit_rules r),
searched_queues as (
    select q.name as queue from unnest(:queues::text[]) as q(name)),
limited(queue, first, beyond) as (
    select s.queue, h.name || b.first, h.name || b.beyond
      from searched_queues s
      join in_force h on starts_with(h.name, 'kind:') or h.name = 'queue:' || s.queue
     cross join (values ('', chr(1)), (chr(10), chr(11)), ('/', '0')) as b(first, beyond)),
gaps(queue, first, beyond) as (
    select l.queue,
           coalesce(max(l.beyond collate "C") over (
               partition by l.queue order by l.first collate "C" rows between unbounded preceding and 1 preceding), ''),
           l.first
      from limited l
    union all
    select s.queue, coalesce((select max(l.beyond collate "C") from limited l where l.queue = s.queue), ''), null from searched_queues s)
select (select c.version from tenure.limit_changes c where c.id),
       (select coalesce(json_object_agg(l.name, l.declared), '{}')::text from tenure.limits l) as declared,
       (select coalesce(json_agg(h.name), '[]')::text from in_force h) as in_force,
       exists (select from searched_queues s
                cross join lateral (
                    select 1 from tenure.jobs j
                     where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = s.queue
                       and j.limit_group > '' limit 1) j) as waiting,
       exists (select from gaps g
                cross join lateral (
                    select 1 from tenure.jobs j
                     where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = g.queue and j.limit_group > ''
                       and j.limit_group >= g.first and (g.beyond is null or j.limit_group < g.beyond)
                     limit 1) j) as outdated
