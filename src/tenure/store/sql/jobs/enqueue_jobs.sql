-- enqueue_jobs: new -> pending or scheduled, by the one door.
-- Returns only what did not come in as asked: the id asked for, the job that stands for it, and whether that has other input.
select e.asked::text, e.id::text, e.differs from tenure.enqueue(:jobs::text, :again::boolean, :borrowed::boolean) e where e.existed
