-- list_held: running jobs that match, newest first, found by the workers that hold them. Otherwise like list_live.
-- Reads all of them: there are never more than the fleet has slots.
with found as materialized (
    select x.id
      from (select j.*
              from tenure.claims c
             cross join lateral unnest(c.job_ids) as i(id)
             cross join lateral (select j.* from tenure.jobs j where j.id = i.id and j.claim_id = c.id limit 1) j
             where i.id < :before::uuid) x
     where x.id >= :floor::uuid
       and (:states::text[] is null or x.state = any (:states::text[]))
       and (:kind::text is null or x.kind = :kind::text)
       and (:queue::text is null or x.queue = :queue::text)
       and (:priority::smallint is null or x.priority = :priority::smallint)
       and (:capability::text is null or x.capability = :capability::text)
       and (:key::text is null or x.key = :key::text)
       and (:parent::uuid is null or x.parent_id = :parent::uuid)
       and (:since::timestamptz is null or x.enqueued_at >= :since::timestamptz)
       and (:until::timestamptz is null or x.enqueued_at < :until::timestamptz)
       and (:input::jsonb is null or x.input @> :input::jsonb)
     order by x.id desc
     limit :limit::integer)
select array(select f.id from found f order by f.id desc) as ids,
       (select f.id from found f order by f.id desc offset :limit::integer - 1 limit 1) as edge
