-- find_versions: what changes about these jobs while they live, to compare with what viewers have seen. One look-up for all viewers of a
-- process. Jobs that do not exist are left out. A live job is found in the first table, so history is read for finished ones only.
select a.id, a.state, a.attempt, a.fence, a.run_at, a.progress_percent, a.progress_message
  from unnest(:ids::uuid[]) as i(id)
 cross join lateral (
    select a.id, a.state, a.attempt, a.fence, a.run_at, a.progress_percent, a.progress_message
      from tenure.all_jobs a where a.id = i.id limit 1) a
