-- check_claims: returns which of these runs have lost their claim, and the reason.
select o.id::text, o.claim_id::text,
       case when j.id is not null then 'taken_by_another_worker'
            when h.state = 'canceled' then 'canceled'
            when h.id is not null then 'already_completed'
            else 'not_found' end as reason
  from json_to_recordset(:runs::json) as o(id uuid, claim_id uuid)
  left join lateral (select j.id, j.claim_id from tenure.jobs j where j.id = o.id limit 1) j on true
  left join lateral (select h.id, h.state from tenure.history h where h.id = o.id limit 1) h on j.id is null
 where j.claim_id is distinct from o.claim_id
    or (select c.id from tenure.claims c where c.id = o.claim_id limit 1) is null
