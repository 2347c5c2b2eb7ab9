-- release_leases: a holder that leaves lets others in at once. Only its own terms.
--   handing_over  only if there is somebody else: another supervisor whose workers live.
-- Returns the duties released; the caller announces that they are free.
update tenure.leases l
   set expires_at = clock_timestamp()
  from json_to_recordset(:held::json) as h(name text, term bigint)
 where l.name = h.name and l.holder = :holder::uuid and l.term = h.term and l.expires_at > clock_timestamp()
   and (not :handing_over::boolean or exists (
        select from tenure.workers w
         where w.supervisor_id <> :holder::uuid and w.died_at is null and w.expires_at > clock_timestamp()))
returning l.name
