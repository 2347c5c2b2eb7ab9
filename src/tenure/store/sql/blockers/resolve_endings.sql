-- resolve_endings: the ends of chains are counted for the jobs that wait for them. Run by a duty: the statement itself checks holder and
-- term.
--   Each waiting job is changed once per statement, by the number of its chains that have ended. If one of them did not complete, a job
--   with on_failure = cancel need not wait for the others. One with on_failure = wait continues to wait for a dead letter, which may be
--   replayed. Every other failure is final, also that of a dead letter which was deleted: then it is the same as cancel.
--   A dead letter that was replayed meanwhile is not an end any more: no waiting job is changed.
--   Output and error of the last link are kept with the ending, also when the chain is looked at again after its history was dropped. A job
--   that was completed by a session of its handler may get its output later: its ending waits for that.
--   An ending that was written again since this statement began is left for the next round: the output that belongs to it cannot be seen.
--   A blocker that a workflow begins to wait for again at the same moment is not counted: it is armed and counted again.
--   only  null, or the chains to restrict it to; peek: changes nothing, and returns the chains that it would look at
-- At most :limit waiting jobs are counted at once; an ending is resolved when it was counted for all of them.
-- Returns whether the term holds, the number of endings and of waiting jobs that were changed, how many of these wait for nothing more, and
-- with peek the chains.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
ended as materialized (
    select e.ctid as tid, e.chain_id, e.state, case when h.id is null then e.output else h.output end as output,
           case when h.id is not null then h.error when j.id is not null then j.error else e.error end as error,
           e.state = 'dead_letter' and j.state is distinct from 'dead_letter' as replayed
      from tenure.chain_endings e
      left join lateral (
        select h.id, h.output, h.error, h.claim_id, h.worker_id from tenure.history h where h.id = e.job_id limit 1) h on true
      left join lateral (select j.id, j.error, j.state from tenure.jobs j where j.id = e.job_id limit 1) j on true
     where not e.resolved and exists (select from leader) and (:only::uuid[] is null or e.chain_id = any (:only::uuid[]))
       and not (e.state = 'completed' and h.output is null
                and exists (select from tenure.watches w where w.job_id = h.claim_id and w.until > clock_timestamp())
                and exists (select from tenure.workers w where w.id = h.worker_id and w.died_at is null))
     order by e.chain_id
     limit :limit::integer
       for update of e skip locked),
pairs as materialized (
    select b.tid, b.chain_id, b.job_id, e.state
      from ended e
     cross join lateral (
        select b.ctid as tid, b.chain_id, b.job_id
          from tenure.blockers b
         where b.chain_id = e.chain_id and b.armed and not b.met and (e.state <> 'dead_letter' or not b.waits)
         order by b.chain_id, b.job_id
         limit :limit::integer) b
     where not e.replayed and not :peek::boolean
       and (select x.chain_id from tenure.chain_endings x where x.ctid = e.tid) is not null
     limit :limit::integer),
met as (
    update tenure.blockers b
       set met = true
      from pairs p
     where b.ctid = p.tid and b.armed and not b.met
    returning b.job_id, b.chain_id, p.state),
notified as materialized (
    select m.job_id, count(*)::integer as chains, (array_agg(m.chain_id) filter (where m.state <> 'completed'))[1] as failed
      from met m
     group by m.job_id),
lowered as (
    update tenure.blocked d
       set missing = case when t.failed is not null and d.on_failure <> 'run' then 0 else greatest(d.missing - t.chains, 0) end,
           failed = coalesce(d.failed, t.failed)
      from notified t
     where d.job_id = t.job_id and d.missing > 0
    returning d.job_id, d.missing),
resolved as (
    update tenure.chain_endings e
       set output = n.output, error = n.error,
           resolved = n.replayed or not exists (
               select from tenure.blockers b
                where b.chain_id = n.chain_id and b.armed and not b.met and (n.state <> 'dead_letter' or not b.waits)
                  and b.ctid not in (select p.tid from pairs p))
      from ended n
     where e.ctid = n.tid and not :peek::boolean
    returning e.chain_id)
select exists (select from leader) as holds, (select count(*) from resolved) as endings, (select count(*) from lowered) as notified,
       (select count(*) from lowered d where d.missing = 0) as ready,
       case when :peek::boolean then (select json_agg(e.chain_id)::text from ended e) end as peeked
