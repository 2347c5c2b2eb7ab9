-- find_tail: the last link of a chain: the live one, or the one that ended the chain. All others were continued, and name the next one.
-- Null: no link of this chain exists.
select coalesce(
           (select j.id from tenure.jobs j where j.id = :chain_id::uuid limit 1),
           (select j.id from tenure.jobs j where j.chain_id = :chain_id::uuid limit 1),
           (select h.id from tenure.history h where h.id = :chain_id::uuid and h.next_id is null limit 1),
           (select h.id from tenure.history h where h.chain_id = :chain_id::uuid and h.next_id is null limit 1)) as id
