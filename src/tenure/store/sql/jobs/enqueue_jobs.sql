-- enqueue_jobs: new -> pending or scheduled, with the function enqueue.
-- Returns only jobs that existed before: the requested id, the id of the existing job (that which holds the key, or with :again the same
-- id), and whether its input differs.
select e.requested_id::text, e.id::text, e.differs from tenure.enqueue(:jobs::text, :again::boolean, :borrowed::boolean) e where e.existed
