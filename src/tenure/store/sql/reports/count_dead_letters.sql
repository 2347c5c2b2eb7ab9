-- count_dead_letters: how many jobs were dead-lettered in the last hour, how many dead letters there are (counted up to 10000), and the
-- most frequent kind of the last hour.
with by_kind as (
    select m.kind, sum(m.jobs) as jobs
      from (select c.kind, c.jobs from tenure.minutes c where c.minute >= now() - interval '1 hour' and c.what = 'dead_letter'
            union all
            select t.kind, t.jobs from tenure.tallies t where t.at >= now() - interval '1 hour' and t.what = 'dead_letter') m
     group by m.kind)
select coalesce((select sum(l.jobs) from by_kind l), 0)::bigint as last_hour,
       (select count(*) from (select from tenure.jobs j where j.position = -1 limit 10000) d) as total,
       (select l.kind from by_kind l order by l.jobs desc, l.kind limit 1)
