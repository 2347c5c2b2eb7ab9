-- list_fleet_minutes: the history of the fleet of the last :seconds, in steps of :step seconds. Of workers and slots the lowest number of
-- each step is returned, because a worker that was away for a minute must be seen, and of everything else the highest.
-- Returns for each step also the versions of the app as JSON, and the queues with pending jobs: [{"name", "pending", "oldest"}].
with kept as materialized (
    select date_bin(make_interval(secs => :step::float8), f.minute, timestamptz '1970-01-01 00:00+00') as at, f.*
      from tenure.fleet_minutes f
     where f.minute >= now() - make_interval(secs => :seconds::float8)),
by_queue as (
    select k.at, q.name, max(q.pending) as pending, max(q.oldest) as oldest
      from kept k
     cross join lateral jsonb_to_recordset(k.queues) as q(name text, pending bigint, oldest real)
     group by k.at, q.name),
queues as (
    select b.at, json_agg(json_build_object('name', b.name, 'pending', b.pending, 'oldest', b.oldest))::text as list
      from by_queue b
     group by b.at),
versions as (
    select k.at, json_agg(distinct v.name)::text as list
      from kept k
     cross join lateral jsonb_array_elements_text(k.app_versions) as v(name)
     group by k.at),
steps as (
    select k.at, min(k.workers) as workers, min(k.slots) as slots, max(k.busy) as busy, max(k.pending) as pending,
           max(k.oldest_seconds)::float8 as oldest_seconds, max(k.memory_mb)::float8 as memory_mb
      from kept k
     group by k.at)
select s.at, s.workers, s.slots, s.busy, s.pending, s.oldest_seconds, s.memory_mb, v.list as app_versions, q.list as queues
  from steps s
  left join queues q on q.at = s.at
  left join versions v on v.at = s.at
 order by s.at
