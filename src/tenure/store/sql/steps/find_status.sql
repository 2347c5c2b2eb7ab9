-- find_status: the status that a workflow has set last, as JSON: that of the last link of its chain, or of the given one if that has set none.
with given as materialized (
    select coalesce((select coalesce(j.chain_id, j.id) from tenure.jobs j where j.id = :id::uuid limit 1),
                    (select coalesce(h.chain_id, h.id) from tenure.history h where h.id = :id::uuid limit 1), :id::uuid) as chain_id),
tail as materialized (
    select coalesce((select j.id from tenure.jobs j where j.id = g.chain_id limit 1),
                    (select j.id from tenure.jobs j where j.chain_id = g.chain_id limit 1),
                    (select h.id from tenure.history h where h.chain_id = g.chain_id and h.next_id is null limit 1)) as id
      from given g)
select coalesce(
           (select s.output from tenure.steps s, tail t where s.job_id = t.id and s.name = '(status)' and s.what = 'status'),
           (select s.output from tenure.steps s where s.job_id = :id::uuid and s.name = '(status)' and s.what = 'status'))::text as status
