-- forget_claims: deletes the claims of a worker under which it holds no job any more, except those that it still works on (:current).
-- The statement itself looks whether a job is held: no job may be left without the row by which it is found. A row that another session
-- has locked is left out, because outcomes wait for the connection of this statement.
--   only  null, or the claims to restrict it to; peek: deletes nothing, and returns the claims as JSON
-- Returns the number of claims deleted, whether others are left than the current ones, and with peek the claims that would be deleted.
with ended as materialized (
    select c.ctid as tid, c.id
      from tenure.claims c
     where c.worker_id = :worker_id::uuid and c.id <> all (:current::uuid[])
       and (:only::uuid[] is null or c.id = any (:only::uuid[]))
       and not exists (
        select from unnest(c.job_ids) as i(id)
         cross join lateral (select 1 from tenure.jobs j where j.id = i.id and j.claim_id = c.id limit 1) j)
       for update skip locked),
forgotten as (
    delete from tenure.claims c where c.ctid = any (array(select e.tid from ended e where not :peek::boolean)) returning c.id)
select (select count(*) from forgotten) as forgotten,
       exists (
        select from tenure.claims c
         where c.worker_id = :worker_id::uuid and c.id <> all (:current::uuid[]) and c.id not in (select f.id from forgotten f)) as others_left,
       (select json_agg(e.id)::text from ended e where :peek::boolean) as peeked
