-- find_builtin: those of these jobs whose kind begins with :reserved, i.e. is a built-in one. Bulk actions leave them alone.
select a.id
  from unnest(:ids::uuid[]) as i(id)
 cross join lateral (select a.id, a.kind from tenure.all_jobs a where a.id = i.id limit 1) a
 where starts_with(a.kind, :reserved::text)
