-- find_links: the links of these chains, the last :most of each, in their order.
select c.chain_id, l.id, l.kind, l.number, l.live
  from unnest(:chain_ids::uuid[]) as c(chain_id)
 cross join lateral (
    select l.id, l.kind, coalesce((l.system ->> 'link')::integer, 1) as number, l.live
      from (select j.id, j.kind, j.system, true as live from tenure.jobs j where j.id = c.chain_id
            union all
            select j.id, j.kind, j.system, true from tenure.jobs j where j.chain_id = c.chain_id
            union all
            select h.id, h.kind, h.system, false from tenure.history h where h.id = c.chain_id
            union all
            select h.id, h.kind, h.system, false from tenure.history h where h.chain_id = c.chain_id) l
     order by number desc
     limit :most::integer) l
 order by c.chain_id, l.number
