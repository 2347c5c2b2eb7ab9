-- find_dead_kinds: the kinds of which there are dead letters, found from one to the next by the index.
with recursive steps(kind) as (
    select ''
    union all
    select n.kind
      from steps s
     cross join lateral (
        select j.kind from tenure.jobs j where j.state = 'dead_letter' and j.kind > s.kind order by j.kind limit 1) n)
select s.kind from steps s where s.kind <> ''
