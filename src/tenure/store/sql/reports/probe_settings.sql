-- probe_settings: the settings :names that are set for the server, this database or one of our roles: name, value, where it is set, and
-- the statement that resets it. Our roles: the current one, and those of sessions that Tenure opened.
select s.name, current_setting(s.name) as value, 'the whole server' as where,
       format('put it back in postgresql.conf (ALTER SYSTEM RESET %s) and reload', s.name) as reset
  from pg_settings s
 where s.name = any (:names::text[]) and s.source in ('configuration file', 'command line', 'environment variable')
union all
select o.name, o.value,
       concat_ws(' in ', case when r.setrole <> 0 then format('role %s', r.setrole::regrole) end,
                         case when r.setdatabase <> 0 then format('database %I', current_database()) end),
       format('run: alter %s reset %s',
              case when r.setrole = 0 then format('database %I', current_database())
                   else format('role %s', r.setrole::regrole) || case when r.setdatabase <> 0 then format(' in database %I', current_database()) else '' end
              end, o.name)
  from pg_db_role_setting r
 cross join lateral (select split_part(c, '=', 1) as name, substr(c, strpos(c, '=') + 1) as value from unnest(r.setconfig) as c) o
 where o.name = any (:names::text[])
   and r.setdatabase in (0, (select d.oid from pg_database d where d.datname = current_database()))
   and (r.setrole = 0 or r.setrole = current_user::regrole
        or r.setrole in (select a.usesysid from pg_stat_activity a where a.datname = current_database() and a.application_name like 'tenure%'))
