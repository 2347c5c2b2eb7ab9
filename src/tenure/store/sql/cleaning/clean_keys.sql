-- clean_keys: removes keys whose window is over and keys for live jobs, as far as their job is not live any more. A duty's
-- write: holder and term are checked by the statement itself.
-- Windows are found by their end, at most :limit of them. Keys for live jobs have no such index: of all keys, :limit are looked
-- at, from (:after_kind, :after_key) on. They stand in nobody's way meanwhile: whoever wants such a key takes it over.
-- Removed by place, as it was seen: a key that was taken over in this moment is another version of the row, and stays.
--   only  null, or the places (ctid) to which it is restricted; peek: removes nothing, and returns the places as JSON
-- Returns whether the term holds, how many were removed of each, where to go on (nowhere when the end was reached), and the places
-- that were asked for.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
over as materialized (
    select k.ctid as place
      from tenure.keys k
     where k.expires_at <= now() and exists (select from leader) and (:only::tid[] is null or k.ctid = any (:only::tid[]))
       and (select j.id from tenure.jobs j where j.id = k.job_id limit 1) is null
     order by k.expires_at
     limit :limit::integer
       for update skip locked),
seen as materialized (
    select k.kind, k.key
      from tenure.keys k
     where (k.kind, k.key) > (:after_kind::text, :after_key::text) and exists (select from leader)
     order by k.kind, k.key
     limit :limit::integer),
idle as materialized (
    select k.place
      from seen s
     cross join lateral (
        select k.ctid as place
          from tenure.keys k
         where k.kind = s.kind and k.key = s.key and k.scope = 'live' and (:only::tid[] is null or k.ctid = any (:only::tid[]))
           and (select j.id from tenure.jobs j where j.id = k.job_id limit 1) is null
         limit 1
           for update skip locked) k),
expired as (
    delete from tenure.keys k where k.ctid = any (array(select o.place from over o where not :peek::boolean)) returning k.key),
freed as (
    delete from tenure.keys k where k.ctid = any (array(select i.place from idle i where not :peek::boolean)) returning k.key),
last as (
    select s.kind, s.key from seen s order by s.kind desc, s.key desc limit 1)
select exists (select from leader) as holds, (select count(*) from expired) as expired, (select count(*) from freed) as freed,
       (select l.kind from last l where (select count(*) from seen) = :limit::integer) as next_kind,
       (select l.key from last l where (select count(*) from seen) = :limit::integer) as next_key,
       (select json_agg(p.place)::text from (select o.place from over o union select i.place from idle i) p where :peek::boolean) as peeked
