-- index_history: builds indexes of history that a later version has added, on partitions that were made before. That of today is left out
-- if it has rows, because jobs could not be settled while its index is built: it has its turn tomorrow. For make_history.
create or replace function tenure.index_history(today date) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
    missing record;
    has_rows boolean;
begin
    for missing in
        select i.relname as index_name, p.relname as partition_name, left(p.relname || '_' || i.relname, 63) as name, pg_get_indexdef(i.oid) as definition
          from pg_index x
          join pg_class i on i.oid = x.indexrelid
         cross join pg_inherits h
          join pg_class p on p.oid = h.inhrelid
         where x.indrelid = 'tenure.history'::regclass and h.inhparent = 'tenure.history'::regclass
           and not exists (select from pg_inherits c join pg_index o on o.indexrelid = c.inhrelid
                            where c.inhparent = i.oid and o.indrelid = p.oid)
         order by 1, 2
    loop
        execute format('select exists (select from tenure.%I)', missing.partition_name) into has_rows;
        continue when has_rows and missing.partition_name in ('history_default', 'history_' || to_char(today, 'YYYYMMDD'));
        execute regexp_replace(missing.definition, '^CREATE INDEX .* ON ONLY .* USING ',
                               format('create index %I on tenure.%I using ', missing.name, missing.partition_name));
        execute format('alter index tenure.%I attach partition tenure.%I', missing.index_name, missing.name);
    end loop;
end
$$;
