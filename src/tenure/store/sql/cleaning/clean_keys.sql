-- clean_keys: removes keys whose window has ended, and keys of scope 'live', if their job is no longer live. Run by a duty: the
-- statement itself checks holder and term.
-- Ended windows are found by their end, at most :limit of them. No such index exists for keys of scope 'live': of all keys, the next
-- :limit after (:after_kind, :after_key) are checked. Until then they block no job: enqueuing with such a key takes it over.
-- Rows are removed by ctid, as they were seen: a key that is taken over at the same moment is a new version of the row, and stays.
--   only  null, or the ctids to restrict it to; peek: removes nothing, and returns the ctids as JSON
-- Returns whether the term holds, the number of keys removed of each sort, the key after which to continue (null at the end of the
-- table), and with peek the ctids.
with leader as materialized (
    select 1 from tenure.leases l
     where l.name = :duty and l.holder = :holder::uuid and l.term = :term::bigint and l.expires_at > clock_timestamp()
       for key share),
ended_windows as materialized (
    select k.ctid as tid
      from tenure.keys k
     where k.expires_at <= now() and exists (select from leader) and (:only::tid[] is null or k.ctid = any (:only::tid[]))
       and (select j.id from tenure.jobs j where j.id = k.job_id limit 1) is null
     order by k.expires_at
     limit :limit::integer
       for update skip locked),
checked as materialized (
    select k.kind, k.key
      from tenure.keys k
     where (k.kind, k.key) > (:after_kind::text, :after_key::text) and exists (select from leader)
     order by k.kind, k.key
     limit :limit::integer),
unused as materialized (
    select k.tid
      from checked s
     cross join lateral (
        select k.ctid as tid
          from tenure.keys k
         where k.kind = s.kind and k.key = s.key and k.scope = 'live' and (:only::tid[] is null or k.ctid = any (:only::tid[]))
           and (select j.id from tenure.jobs j where j.id = k.job_id limit 1) is null
         limit 1
           for update skip locked) k),
expired as (
    delete from tenure.keys k where k.ctid = any (array(select o.tid from ended_windows o where not :peek::boolean)) returning k.key),
freed as (
    delete from tenure.keys k where k.ctid = any (array(select i.tid from unused i where not :peek::boolean)) returning k.key),
last as (
    select s.kind, s.key from checked s order by s.kind desc, s.key desc limit 1)
select exists (select from leader) as holds, (select count(*) from expired) as expired, (select count(*) from freed) as freed,
       (select l.kind from last l where (select count(*) from checked) = :limit::integer) as next_kind,
       (select l.key from last l where (select count(*) from checked) = :limit::integer) as next_key,
       (select json_agg(p.tid)::text from (select o.tid from ended_windows o union select i.tid from unused i) p where :peek::boolean) as peeked
