-- forget_claims: deletes the claims of a worker under which it holds no job any more, except those that it still works on (:current).
-- The statement itself looks whether a job is held: no job may be left without the row by which it is found.
with ended as materialized (
    select c.ctid as place
      from tenure.claims c
     where c.worker_id = :worker_id::uuid and c.id <> all (:current::uuid[])
       and not exists (
        select from unnest(c.job_ids) as i(id)
         cross join lateral (select 1 from tenure.jobs j where j.id = i.id and j.claim_id = c.id limit 1) j))
delete from tenure.claims c where c.ctid = any (array(select e.place from ended e))
