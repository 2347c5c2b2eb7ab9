-- find_blockers: the chains that a job waits for or has waited for, in the order of its call, with how they ended; null if they have not.
--   after  only those with a larger number; most: the maximum number; outputs: whether to read their outputs
select b.number, b.chain_id, b.met, e.job_id, e.kind, e.state, case when :outputs::boolean then e.output::text end as output, e.error
  from (select b.number, b.chain_id, b.met from tenure.blockers b where b.job_id = :job_id::uuid and b.number > :after::integer order by b.job_id, b.number limit :most::integer) b
  left join lateral (
    select e.job_id, e.kind, e.state, e.output, e.error from tenure.chain_endings e where e.chain_id = b.chain_id and b.met limit 1) e on true
 order by b.number
