-- find_next_wakeup: the seconds until the first sleeping workflow is due, by the clock of the database. Null: none sleeps.
select extract(epoch from min(j.run_at) - clock_timestamp())::float8 as seconds
  from tenure.jobs j
 where j.position = 0 and j.state = 'waiting' and j.run_at < 'infinity'
