-- find_blockers: the chains that a job waits for or has waited for, in the order of its call, with how they ended; null if they have not.
--   after  only those with a larger number; most: the maximum number; outputs: whether to read their outputs
-- A chain that ended a second time, because a dead letter was replayed, has its output in history until the resolver has seen its new end.
select b.number, b.chain_id, b.met as ended, e.job_id, e.kind, e.state, case when :outputs::boolean then e.output::text end as output, e.error
  from (select b.number, b.chain_id, b.met from tenure.blockers b where b.job_id = :job_id::uuid and b.number > :after::integer order by b.job_id, b.number limit :most::integer) b
  left join lateral (
    select e.job_id, e.kind, e.state, coalesce(n.output, e.output) as output,
           coalesce(n.error, e.error) as error
      from (select e.* from tenure.chain_endings e where e.chain_id = b.chain_id and b.met limit 1) e
      left join lateral (
        select h.output, h.error from tenure.history h where h.id = e.job_id and not e.resolved limit 1) n on true) e on true
 order by b.number
