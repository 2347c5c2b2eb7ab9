-- find_chain: the chain that a live job is a link of.
select coalesce(j.chain_id, j.id)::text as chain_id from tenure.jobs j where j.id = :id::uuid
