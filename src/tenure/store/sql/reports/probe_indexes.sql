-- probe_indexes: every index of our tables, except those of partitions: its name and table, whether it can be used by queries (that of a
-- partitioned table is not used itself), whether a constraint needs it, and a text that is equal for indexes which differ only in their names.
select i.relname::text as name, t.relname::text as table, i.relkind = 'I' or (x.indisvalid and x.indisready) as valid, x.indisunique as unique,
       concat_ws('|', t.relname, i.relam, x.indkey, x.indcollation, x.indclass, x.indoption,
                 coalesce(pg_get_expr(x.indexprs, x.indrelid), '-'),
                 coalesce(pg_get_expr(x.indpred, x.indrelid), '-')) as definition
  from pg_index x
  join pg_class i on i.oid = x.indexrelid
  join pg_class t on t.oid = x.indrelid
 where t.relnamespace = (select j.relnamespace from pg_class j where j.oid = 'tenure.jobs'::regclass) and not t.relispartition
 order by t.relname, i.relname
