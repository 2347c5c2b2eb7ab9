-- find_settled: returns which of these runs are in history, finished under this same claim.
-- Used after the reply to a settling statement was lost with its connection.
select o.id::text
  from json_to_recordset(:outcomes::json) as o(id uuid, claim_id uuid)
 cross join lateral (select 1 from tenure.history h where h.id = o.id and h.claim_id = o.claim_id limit 1) h
