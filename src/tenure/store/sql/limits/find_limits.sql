-- find_limits: every limit: its rules in force, those declared in code, those set at run time and by whom; how many jobs run under it,
-- how many started in its window, and whether jobs wait for it.
select l.name, l.rules::text, l.declared::text, l.override::text, l.declared_at, l.override_at, l.override_by,
       (select count(*)
          from tenure.jobs j
         where j.held_group > '' and j.held_group is not null
           and l.name in ('kind:' || j.kind, 'queue:' || j.queue)) as running,
       (select coalesce(sum(s.jobs), 0)
          from tenure.starts s
         where s.limit_group = l.name
           and s.ended > clock_timestamp() - make_interval(secs => (l.rules #>> '{rate,1}')::float8))::bigint as started,
       case when starts_with(l.name, 'kind:') then exists (
                select from tenure.jobs j
                 where j.position > 0 and j.limit_group is not null and j.held_group is null and j.limit_group >= l.name
                   and j.limit_group < l.name || '0' and 'kind:' || j.kind = l.name)
            else exists (
                select from tenure.jobs j
                 where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = substr(l.name, 7)
                   and j.limit_group > '') end as waiting
  from tenure.limits l
 where l.declared is not null or l.override is not null
 order by l.name
