-- list_not_completed: failed or canceled jobs; each state is read in the order of its index. Otherwise like list_finished_kinds, but at most
-- 2000 jobs: they are far apart, each on its own page.
with streams as materialized (
    select s.name, :before::uuid as before, :floor::uuid as floor, greatest(2000 / count(*) over (), 1) as share
      from unnest(:states::text[]) as s(name)),
found as materialized (
    select s.name, s.share, x.id, x.rank, x.fits
      from streams s
     cross join lateral (
        select x.id, x.rank, f.fits
          from (select y.*, row_number() over (order by y.state desc, y.id desc) as rank
                  from (select h.*
                          from tenure.history h
                         where h.state <> 'completed' and (h.state, h.id) < (s.name, s.before)
                           and (h.state, h.id) >= (s.name, s.floor)
                         order by h.state desc, h.id desc
                         limit 2000) y
                 order by y.state desc, y.id desc
                 limit (select s.share from streams s limit 1)) x
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
         where f.fits or x.rank = s.share
         order by x.state desc, x.id desc
         limit :limit::integer) x),
edges as (
    select distinct on (f.name) f.id, f.rank = f.share or count(*) over (partition by f.name) = :limit::integer as cut
      from found f
     order by f.name, f.id)
select array(select f.id from found f where f.fits order by f.id desc limit :limit::integer) as ids,
       (select e.id from edges e where e.cut order by e.id desc limit 1) as edge
