-- enqueue_one_borrowed: like enqueue_one, in a transaction of the caller; :payload is sent when it commits, unless it is null. PostgreSQL
-- sends equal payloads only once per transaction.
-- Returns no rows: neither of the two functions ever returns null.
select null::text as requested_id, null::text as id, null::boolean as differs
 where tenure.enqueue_one(:job::jsonb) is null
    or case when :payload::text is not null then pg_notify(:channel::text, :payload::text) is null end
