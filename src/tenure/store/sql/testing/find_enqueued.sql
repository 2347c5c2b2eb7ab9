-- find_enqueued: the jobs of these kinds, live and finished, in the order of their ids. Run on the caller's connection, it also sees what
-- its own transaction has not committed yet.
select a.id, a.kind, a.queue, a.state, a.priority, a.key, a.input::text as input, a.auth::text as auth, a.meta::text as meta,
       a.system::text as system, a.run_at
  from tenure.all_jobs a
 where :kinds::text[] is null or a.kind = any (:kinds::text[])
 order by a.id
