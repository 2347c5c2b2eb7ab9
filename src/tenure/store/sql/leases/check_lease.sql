-- check_lease: one row while the term holds, none when it is over. For duties that only look.
select 1 from tenure.leases l
 where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
