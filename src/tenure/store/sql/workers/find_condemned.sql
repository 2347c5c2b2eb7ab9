-- find_condemned: the ids of condemned workers, in the order in which they were condemned, at most :limit.
select w.id::text from tenure.workers w where w.died_at is not null order by w.died_at limit :limit::integer
