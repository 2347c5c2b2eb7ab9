-- release_leases: a holder that leaves lets others in at once. Only its own terms.
update tenure.leases l
   set expires_at = clock_timestamp()
  from json_to_recordset(:held::json) as h(name text, term bigint)
 where l.name = h.name and l.holder = :holder::uuid and l.term = h.term and l.expires_at > clock_timestamp()
