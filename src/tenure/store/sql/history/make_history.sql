-- make_history: makes the partitions of today and the next :days_ahead days that are missing. A duty's write: holder and term are
-- checked by the statement itself.
-- Returns how many were made. No row when the term is over.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share)
select tenure.make_history(:days_ahead::integer) from leader
