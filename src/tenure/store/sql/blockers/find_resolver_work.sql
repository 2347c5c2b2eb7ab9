-- find_resolver_work: which parts of a resolver's round have rows to look at, so that a round without work is one statement.
-- Run by a duty: the statement itself checks holder and term. Each is the first entry of an index that is empty when nothing waits;
-- ordered, because for EXISTS the planner may read the table instead.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share)
select exists (select from leader) as holds,
       (select b.job_id from tenure.blockers b where not b.armed order by b.job_id limit 1) is not null as arm,
       (select e.chain_id from tenure.chain_endings e where not e.resolved order by e.chain_id limit 1) is not null as resolve,
       (select d.job_id from tenure.blocked d where d.missing = 0 order by d.job_id limit 1) is not null as release,
       (select e.id from tenure.events e where e.position is null order by e.id limit 1) is not null
           or (select w.job_id from tenure.waits w where not w.checked order by w.job_id limit 1) is not null as events
