-- number_events: gives events that are committed their positions, at most :limit, and marks the waits for them as unchecked. Run by a duty: the
-- statement itself checks holder and term.
--   only  null, or the ids to restrict it to; peek: changes nothing, and returns the ids as JSON
-- One leader at a time does this, so positions grow in the order in which events become visible: a reader that goes by position
-- misses none.
-- Returns whether the term holds, the number of events, and with peek the ids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
unseen as materialized (
    select e.id
      from tenure.events e
     where e.position is null and exists (select from leader) and (:only::bigint[] is null or e.id = any (:only::bigint[]))
     order by e.id
     limit :limit::integer),
numbered as materialized (
    select u.id, nextval('tenure.event_position') as position from (select u.id from unseen u where not :peek::boolean order by u.id) u),
positioned as (
    update tenure.events e set position = n.position from numbered n where e.id = n.id returning e.name, e.key),
unchecked as (
    update tenure.waits w
       set checked = false
      from (select distinct p.name, p.key from positioned p) p
     where w.event = p.name and w.key = p.key and w.checked)
select exists (select from leader) as holds, (select count(*) from positioned) as touched,
       (select json_agg(u.id::text)::text from unseen u where :peek::boolean) as peeked
