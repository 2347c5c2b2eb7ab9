-- list_live: live jobs that match, newest first, from the id :floor up to, but not including, :before.
-- Reads at most 5000 jobs, so that no filter can make it slow. The bounds are hidden from the planner: it would expect only a few rows
-- between them, and sort them all instead of reading in the order of the index.
-- Returns the ids, and the id down to which all jobs were read, which may be below :floor; null if nothing is left below it.
with bounds as materialized (
    select :before::uuid as before),
found as materialized (
    select x.id, x.rank, x.fits
      from bounds a
     cross join lateral (
        select x.id, x.rank, f.fits
          from (select y.*, row_number() over (order by y.id desc) as rank
                  from (select j.*
                          from tenure.jobs j
                         where j.id < a.before
                         order by j.id desc
                         limit 5000) y) x
         cross join lateral (
            select x.id >= :floor::uuid
               and (:states::text[] is null or x.state = any (:states::text[]))
               and (:kind::text is null or x.kind = :kind::text)
               and (:queue::text is null or x.queue = :queue::text)
               and (:priority::smallint is null or x.priority = :priority::smallint)
               and (:capability::text is null or x.capability = :capability::text)
               and (:key::text is null or x.key = :key::text)
               and (:parent::uuid is null or x.parent_id = :parent::uuid)
               and (:since::timestamptz is null or x.enqueued_at >= :since::timestamptz)
               and (:until::timestamptz is null or x.enqueued_at < :until::timestamptz)
               and (:input::jsonb is null or x.input @> :input::jsonb) as fits) f
         where f.fits or x.rank = 5000
         order by x.id desc
         limit :limit::integer) x)
select array(select f.id from found f where f.fits order by f.id desc) as ids,
       (select f.id from found f where f.rank = 5000 or (select count(*) from found) = :limit::integer order by f.id limit 1) as edge
