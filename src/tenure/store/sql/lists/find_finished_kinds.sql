-- find_finished_kinds: the kinds that have finished jobs, read by stepping from one kind to the next in the index.
with recursive found(kind) as (
    select ''
    union all
    select n.kind
      from found s
     cross join lateral (
        select h.kind from tenure.history h where h.kind > s.kind order by h.kind limit 1) n)
select s.kind from found s where s.kind <> ''
