-- enqueue_jobs: new -> pending or scheduled, by the one door.
-- Returns the ids that existed before; none when all is new.
select e.id::text from tenure.enqueue(:jobs::text, :again::boolean) e where e.existed
