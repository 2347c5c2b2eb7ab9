-- counts_of_period: what was counted in the last :seconds. From the minutes of a day at most, from the hours beyond that or if the steps
-- (:step) are whole hours. Includes tallies that the leader has not merged yet. A minute or hour that begins before the period is in it in
-- part: the conditions are those of date_trunc without that function, which would be called for each row.
select c.minute as at, c.queue, c.kind, c.what, c.jobs, c.ran from tenure.minutes c
 where :seconds::float8 <= 86400 and :step::float8 < 3600 and c.minute > now() - make_interval(secs => :seconds::float8 + 60)
union all
select c.hour, c.queue, c.kind, c.what, c.jobs, c.ran from tenure.counters c
 where (:seconds::float8 > 86400 or :step::float8 >= 3600) and c.hour > now() - make_interval(secs => :seconds::float8 + 3600)
union all
select t.at, t.queue, t.kind, t.what, t.jobs, t.ran from tenure.tallies t
 where t.at >= now() - make_interval(secs => :seconds::float8)
