-- probe_tables: each of our tables, including partitions: its name; live and dead rows; whether autovacuum is enabled for it; whether it
-- is unlogged; and, as JSON, the publications that publish its updates or deletes, if it has no replica identity for that.
with our_tables as materialized (
    select c.oid, format('%I.%I', n.nspname, c.relname) as name, n.nspname, c.relname, c.relpersistence, c.reloptions,
           c.relreplident = 'n' or (c.relreplident = 'd' and not exists (
               select from pg_index i where i.indrelid = c.oid and i.indisprimary)) as anonymous
      from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and c.relnamespace = (select j.relnamespace from pg_class j where j.oid = 'tenure.jobs'::regclass))
select o.name, coalesce(s.n_live_tup, 0)::bigint as live, coalesce(s.n_dead_tup, 0)::bigint as dead,
       coalesce(o.reloptions::text, '') !~ 'autovacuum_enabled=(false|off|no|0)' as autovacuum,
       o.relpersistence = 'u' as unlogged,
       case when o.anonymous then (
           select json_agg(distinct p.pubname)::text
             from pg_publication p
             join pg_publication_tables t on t.pubname = p.pubname
            where (p.pubupdate or p.pubdelete) and t.schemaname = o.nspname
              -- A partition may be published under the name of its parent table.
              and t.tablename in (select o.relname union all
                                  select c.relname from pg_partition_ancestors(o.oid) a join pg_class c on c.oid = a.relid)) end as publications
  from our_tables o
  left join pg_stat_all_tables s on s.relid = o.oid
 order by o.name
