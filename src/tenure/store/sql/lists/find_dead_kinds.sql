-- find_dead_kinds: the kinds that have dead letters, read by stepping from one kind to the next in the index.
with recursive found(kind) as (
    select ''
    union all
    select n.kind
      from found s
     cross join lateral (
        select j.kind from tenure.jobs j where j.position = -1 and j.kind > s.kind order by j.kind limit 1) n)
select s.kind from found s where s.kind <> ''
