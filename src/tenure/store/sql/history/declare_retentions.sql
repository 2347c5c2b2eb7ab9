-- declare_retentions: stores how long finished jobs of these kinds are kept, as the code declares it (seconds; null: the default).
-- Returns nothing.
with declared as (
    select k.kind, make_interval(secs => k.keep) as keep
      from json_to_recordset(:kinds::json) as k(kind text, keep double precision)
     order by k.kind),
removed as (
    delete from tenure.retentions r using declared d where r.kind = d.kind and d.keep is null)
insert into tenure.retentions as r (kind, keep)
select d.kind, d.keep from declared d where d.keep is not null
on conflict (kind) do update set keep = excluded.keep where r.keep <> excluded.keep
