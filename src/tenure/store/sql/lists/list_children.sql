-- list_children: live jobs that another job enqueued. Otherwise like list_live.
with bounds as materialized (
    select :parent::uuid as parent, :before::uuid as before, :floor::uuid as floor),
found as materialized (
    select x.id, x.rank, x.fits
      from bounds a
     cross join lateral (
        select x.id, x.rank, f.fits
          from (select y.*, row_number() over (order by y.parent_id desc, y.id desc) as rank
                  from (select j.*
                          from tenure.jobs j
                         where j.parent_id is not null and (j.parent_id, j.id) < (a.parent, a.before)
                           and (j.parent_id, j.id) >= (a.parent, a.floor)
                         order by j.parent_id desc, j.id desc
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
         order by x.parent_id desc, x.id desc
         limit :limit::integer) x)
select array(select f.id from found f where f.fits order by f.id desc) as ids,
       (select f.id from found f where f.rank = 5000 or (select count(*) from found) = :limit::integer order by f.id limit 1) as edge
