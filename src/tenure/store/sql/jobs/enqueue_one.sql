-- enqueue_one: new -> pending for a single plain job, with the function enqueue_one.
-- Returns no rows, because such a job cannot exist before: it has no key.
select null::text as requested_id, null::text as id, null::boolean as differs where tenure.enqueue_one(:job::jsonb) is null
