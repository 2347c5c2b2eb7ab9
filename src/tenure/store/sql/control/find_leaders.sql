-- find_leaders: who does which duty, under which term, and whether its lease still holds.
select l.name, l.holder, l.term, l.acquired_at, l.heartbeat_at, l.expires_at, l.metadata::text, l.expires_at > clock_timestamp()
  from tenure.leases l
 order by l.name
