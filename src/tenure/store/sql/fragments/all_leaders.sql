-- all_leaders: the holder of each duty, its term, whether its lease holds, and whether it is stuck: it sends heartbeats, but the round
-- that it announced is more than 30 s overdue. Users' own leases (lease:NAME) have no rounds. Returns
-- the findings of its last round as JSON.
select l.name as duty, l.holder, l.term, l.acquired_at, l.heartbeat_at, l.expires_at, (l.metadata - 'found')::text as metadata,
       (select json_agg(f)::text
          from jsonb_to_recordset(l.metadata -> 'found') as f(code text, text text, way_out text, severity text, about text)) as findings,
       l.expires_at > clock_timestamp() as holds,
       l.expires_at > clock_timestamp()
       and greatest((l.metadata ->> 'next_run')::timestamptz, l.acquired_at) < clock_timestamp() - interval '30 s'
       and l.holder <> '00000000-0000-0000-0000-000000000000' and not starts_with(l.name, 'lease:') as stuck
  from tenure.leases l
 order by l.name
