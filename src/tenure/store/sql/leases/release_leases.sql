-- release_leases: a holder that leaves lets others in at once. Only its own terms.
--   handing_over  only if there is somebody else: another supervisor whose workers live.
-- Waits for statements of these duties that are under way (they hold the row for key share), as acquire_leases does.
-- Returns the duties released; the caller announces that they are free.
with ours as materialized (
    select l.name, l.term
      from json_to_recordset(:held::json) as h(name text, term bigint)
      join tenure.leases l on l.name = h.name and l.term = h.term
     where l.holder = :holder::uuid and l.expires_at > clock_timestamp()
     order by l.name
       for update of l)
update tenure.leases l
   set expires_at = clock_timestamp()
  from ours o
 where l.name = o.name and l.holder = :holder::uuid and l.term = o.term and l.expires_at > clock_timestamp()
   and (not :handing_over::boolean or exists (
        select from tenure.workers w
         where w.supervisor_id <> :holder::uuid and w.died_at is null and w.expires_at > clock_timestamp()))
returning l.name
