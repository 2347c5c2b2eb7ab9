-- clean_endings: removes the endings of chains that no job waits for or has waited for any more. Run by a duty: the statement itself
-- checks holder and term. Of all rows, the next :limit after :after are checked. A row that was written less than an hour ago stays: a job
-- that waits for this chain may be about to be committed. So does a row that was changed since this statement began, as the resolver does
-- when a job begins to wait for the chain.
--   only  null, or the chains to restrict the removal to; peek: removes nothing, and returns the chains as JSON
-- Returns whether the term holds, the number of rows removed, the chain after which to continue (null at the end of the table), and with
-- peek the chains.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
checked as materialized (
    select e.chain_id
      from tenure.chain_endings e
     where e.chain_id > :after::uuid and exists (select from leader)
     order by e.chain_id
     limit :limit::integer),
unused as materialized (
    select c.chain_id, e.tid
      from checked c
     cross join lateral (
        select e.ctid as tid from tenure.chain_endings e
         where e.chain_id = c.chain_id and e.ended_at < now() - interval '1 hour'
         limit 1 for update skip locked) e
     where (:only::uuid[] is null or c.chain_id = any (:only::uuid[]))
       and (select b.job_id from tenure.blockers b where b.chain_id = c.chain_id limit 1) is null),
removed as (
    delete from tenure.chain_endings e
     where e.ctid = any (array(select u.tid from unused u where not :peek::boolean))
    returning e.chain_id)
select exists (select from leader) as holds, (select count(*) from removed) as removed,
       (select c.chain_id from checked c where (select count(*) from checked) = :limit::integer order by c.chain_id desc limit 1) as next,
       case when :peek::boolean then (select json_agg(u.chain_id)::text from unused u) end as peeked
