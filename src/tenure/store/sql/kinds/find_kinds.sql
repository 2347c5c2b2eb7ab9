-- find_kinds: all kinds that workers have declared, and how many living workers run each.
select k.name, k.app, k.declared_at, k.definition::text,
       (select count(*) from tenure.workers w
         where w.died_at is null and w.expires_at > clock_timestamp() and w.kinds ? k.name) as workers
  from tenure.kinds k
 order by k.name
