-- find_dependants: the live jobs that wait for the end of these chains, and those that wait for theirs, as long as they are not among the
-- given chains themselves. With the chains that they are links of.
with recursive doomed (chain_id, job_id) as (
    select c.chain_id, null::uuid from unnest(:chain_ids::uuid[]) as c(chain_id)
     union
    select coalesce(j.chain_id, j.id), j.id
      from doomed d
     cross join lateral (select b.job_id from tenure.blockers b where b.chain_id = d.chain_id and not b.met offset 0) b
     cross join lateral (
        select j.id, j.chain_id from tenure.jobs j where j.id = b.job_id and j.state in ('blocked', 'waiting') limit 1) j)
select distinct d.chain_id, d.job_id
  from doomed d
 where d.job_id is not null and d.chain_id <> all (:chain_ids::uuid[])
 order by 1, 2
