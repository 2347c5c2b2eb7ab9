-- declare_kinds: stores what the code of an app declares about its kinds, so that processes without the handlers can enqueue them.
-- An unchanged kind is written at most once a day: its time shows when it was last in use.
insert into tenure.kinds as k (name, app, definition)
select d.name, :app::text, d.definition
  from json_to_recordset(:kinds::json) as d(name text, definition jsonb)
 order by d.name
on conflict (name) do update
   set app = excluded.app, definition = excluded.definition, declared_at = clock_timestamp()
 where k.definition <> excluded.definition or k.app <> excluded.app or k.declared_at < clock_timestamp() - interval '1 day'
