-- add_members: adds chains to an open group that has `expected` of them, in their order. For app.map(), which enqueues the jobs before in the
-- same transaction.
-- Returns the new total, also if an earlier call, whose answer was lost, has added these members. No row: the group is not open, was
-- canceled, or another call adds members to it.
create or replace function tenure.add_members(group_id uuid, members uuid[], expected integer) returns setof integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The group is not canceled before the members are committed: then it finds them.
    perform from tenure.jobs j where j.id = group_id for key share;
    if found then
        update tenure.blocked d
           set total = d.total + cardinality(members), missing = d.missing + cardinality(members)
         where d.job_id = group_id and d.open and d.missing > 0 and d.total = expected;
    end if;
    if found then
        insert into tenure.blockers (chain_id, job_id, number)
        select m.id, group_id, expected + m.number from unnest(members) with ordinality as m(id, number);
    end if;
    if found or exists (select from tenure.blockers b where b.job_id = group_id and b.number = expected + 1 and b.chain_id = members[1]) then
        return next expected + cardinality(members);
    end if;
end
$$;
