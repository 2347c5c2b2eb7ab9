-- release_leases: releases duties of a holder that shuts down, so that others can take them at once. Only for its own terms.
--   handing_over  only if another supervisor with living workers exists.
-- Waits for running statements of these duties (they hold the row for key share), as acquire_leases does.
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
