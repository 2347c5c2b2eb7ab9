-- enqueue_borrowed: like enqueue_jobs, in a transaction of the caller; :payloads are sent when it commits. PostgreSQL sends equal
-- payloads only once per transaction.
-- Returns the same as enqueue_jobs, or a row of nulls.
select e.requested_id::text, e.id::text, e.differs
  from (select count(pg_notify(:channel, p.payload)) as payloads from json_array_elements_text(:payloads::json) as p(payload)) n
  left join tenure.enqueue(:jobs::text, false, true) e on e.existed
