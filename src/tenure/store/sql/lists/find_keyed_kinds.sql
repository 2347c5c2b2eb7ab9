-- find_keyed_kinds: the kinds that have keys, read by stepping from one kind to the next in the index.
with recursive found(kind) as (
    select ''
    union all
    select n.kind
      from found s
     cross join lateral (
        select k.kind from tenure.keys k where k.kind > s.kind order by k.kind limit 1) n)
select s.kind from found s where s.kind <> ''
