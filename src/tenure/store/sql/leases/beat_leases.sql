-- beat_leases: renews these duties for their holder, and stores what it did since its last heartbeat. Only for its own terms, and only
-- if they have not expired.
-- Findings are stored twice: as lines for people who read the row, and as values (found), which all_leaders returns.
-- Returns the duties renewed: a missing one is held by another process, or by none.
update tenure.leases l
   set heartbeat_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => h.ttl),
       metadata = l.metadata || jsonb_strip_nulls(jsonb_build_object(
           'runs', coalesce((l.metadata ->> 'runs')::bigint, 0) + h.runs,
           'items', coalesce((l.metadata ->> 'items')::bigint, 0) + h.items,
           'errors', coalesce((l.metadata ->> 'errors')::bigint, 0) + h.errors,
           'seconds', round(coalesce((l.metadata ->> 'seconds')::numeric, 0) + h.seconds, 4),
           'last_run', clock_timestamp() - make_interval(secs => h.ago),
           'last_seconds', h.last_seconds,
           'next_run', clock_timestamp() + make_interval(secs => h.next),
           'last_error', h.last_error,
           'findings', h.findings,
           'found', h.found))
  from json_to_recordset(:held::json) as h(name text, term bigint, ttl float8, runs bigint, items bigint, errors bigint,
       seconds numeric, ago float8, last_seconds numeric, next float8, last_error text, findings jsonb, found jsonb)
 where l.name = h.name and l.holder = :holder::uuid and l.term = h.term and l.expires_at > clock_timestamp()
returning l.name
