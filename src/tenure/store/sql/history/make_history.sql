-- make_history: creates the missing partitions for today and the next :days_ahead days. Run by a duty: the statement itself checks
-- holder and term.
-- Returns the number of partitions created. No row if the term has ended.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share)
select tenure.make_history(:days_ahead::integer) from leader
