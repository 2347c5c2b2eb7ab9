-- keep_history: partitions made ahead and dropped by age. A duty's write: holder and term are checked, and renewed, by the
-- statement itself. Returns whether the term holds, and how many partitions were made and dropped.
with renewed as materialized (
    update tenure.leases l
       set heartbeat_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => :ttl::float8)
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
    returning l.term)
select k.made, k.dropped
  from renewed r
 cross join lateral tenure.keep_history(:days_ahead::integer, make_interval(secs => :keep::float8)) k
