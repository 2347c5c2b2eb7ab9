-- lock_limits: locks these limits for one claim at a time, until the end of the transaction. The next statement does the counting: this
-- statement's snapshot of the jobs may be older than the lock, the next one's is not.
-- Locks only limits for which jobs wait in these queues and which do not seem full in this snapshot: if a limit is full, nothing is
-- written. Never waits for a lock.
-- A session that is idle for a second between the two statements is terminated, and its locks are released.
-- A claim under a limit must survive a crash of the server while its job runs: this commit is as durable as the server is configured,
-- although other commits of this connection are not.
-- The names of the locked limits are also left in the setting tenure_link.locked until the end of the transaction, so that claim_limited can
-- be sent without waiting for the answer to this statement.
-- Returns the limits under which jobs may be claimed, and whether each was locked.
with wanted as materialized (
    select r.name
      from tenure.limit_rules r
     cross join lateral (select starts_with(r.name, 'kind:') as of_kind) k
     -- The column limit_group begins with the kind's limit, if the kind is limited, followed by a slash, a line break or nothing.
     cross join lateral (
        select case when k.of_kind then r.name else '' end collate "C" as first,
               case when k.of_kind then r.name || '0' else 'r' end collate "C" as beyond) g
     where r.name = any (:names::text[])
       and exists (
        select from unnest(:queues::text[]) as q(name)
         cross join lateral (
            select 1 from tenure.jobs j
             where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = q.name and j.limit_group >= g.first
               and j.limit_group < g.beyond
             limit 1) j
         where k.of_kind or r.name = 'queue:' || q.name)
       and (r.concurrency is null or r.concurrency > (
        select count(*)
          from (select
                  from tenure.jobs j
                 where j.held_group is not null and j.held_group >= g.first and j.held_group < g.beyond
                   and r.name = case when k.of_kind then 'kind:' || j.kind else 'queue:' || j.queue end
                 order by j.held_group
                 limit r.concurrency) h))),
locked as materialized (
    select l.name
      from tenure.limits l
     where l.name = any (array(select w.name from wanted w))
       for no key update skip locked)
select w.name, exists (select from locked l where l.name = w.name) as locked
  from wanted w
 cross join (select set_config('tenure_link.locked', array_to_string(array(select l.name from locked l), E'\n'), true),
                    set_config('idle_in_transaction_session_timeout', '1000', true),
                    set_config('synchronous_commit', coalesce(nullif(current_setting('tenure_link.synchronous_commit', true), ''),
                                                              current_setting('synchronous_commit')), true)) awake
