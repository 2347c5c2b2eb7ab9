-- check_lease: returns one row while the term holds, none when it has ended. For duties that only read.
select 1 from tenure.leases l
 where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
