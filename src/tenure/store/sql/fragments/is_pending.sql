-- is_pending: whether the job j is pending, and not running. Hidden from the planner: by the statistics of a moment when all jobs ran, it
-- would expect none, and sort all jobs of the queue instead of reading them in the order of the index.
case when j.state = 'pending' then true end
