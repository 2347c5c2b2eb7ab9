-- claim_limited: pending -> running for jobs in limit groups, as many as the limits have room for and at most :limit. The second statement
-- of a transaction that begins with lock_limits: everything it counts was committed before the locks were acquired.
--   :locked  the limits that this transaction has locked; jobs under any other limit are skipped. Null: those that lock_limits has left in
--            the setting tenure_link.locked, which are none if it has locked nothing.
--   :queues  where to search, and after which limit groups: [{"queue", "after"}]. Groups take turns, from there on and around.
--   :steps   how many sets of jobs with the same limit groups, kind and capability are examined in each queue
-- The room of a limit is what is left of its concurrency, given the jobs held now, and of its rate, given the starts in its window. It is
-- computed for the whole limit and for the job's own key, for its kind and for its queue. Within a group, jobs have the same order as in
-- any queue. Across groups, the highest priority comes first, and equal priorities take turns; if the limit is fair, turns come before
-- priorities.
-- The marks `passing over` are explained in claim_jobs.
-- The first row holds the reply: where to continue, and when to try again. The other rows are the claimed jobs.
with recursive clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now),
locked as materialized (
    select coalesce(:locked::text[], string_to_array(current_setting('tenure_link.locked', true), E'\n'), '{}') as names),
holder as materialized (
    select w.id, w.draining_at is null as takes
      from tenure.workers w
     where w.id = :worker_id::uuid and w.died_at is null and w.expires_at > coalesce(:now::timestamptz, clock_timestamp())
       for share),
-- Counted only if a limit in question bounds how many run at a time.
held as materialized (
    select j.kind, j.queue, count(*) as jobs,
           case when starts_with(j.held_group, 'kind:') then split_part(j.held_group, E'\n', 1) end as kind_line,
           split_part(j.held_group, E'\n', case when starts_with(j.held_group, 'kind:') then 2 else 1 end) as queue_line
      from tenure.jobs j
     where j.held_group > '' and j.held_group is not null
       and exists (select from tenure.limit_rules r
                    where r.name = any ((select l.names from locked l)::text[]) and (r.concurrency is not null or r.concurrency_per_key is not null))
     group by j.kind, j.queue, j.held_group),
-- The same by key, as objects: each set of jobs finds its number by a search, not by a scan of all keys. A line has no line break, so
-- that line and name together are unambiguous.
held_keys as materialized (
    select (select jsonb_object_agg(k.key, k.jobs)
              from (select h.kind_line || E'\n' || h.kind as key, sum(h.jobs) as jobs
                      from held h where h.kind_line is not null group by 1) k) as of_kinds,
           (select jsonb_object_agg(k.key, k.jobs)
              from (select h.queue_line || E'\n' || h.queue as key, sum(h.jobs) as jobs from held h group by 1) k) as of_queues),
bounds as materialized (
    select r.*, row_number() over () as no, r.name = any ((select l.names from locked l)::text[]) as locked,
           least(case when r.concurrency is not null then r.concurrency - (
                     select coalesce(sum(h.jobs), 0) from held h where r.name in ('kind:' || h.kind, 'queue:' || h.queue)) end,
                 r.rate - s.starts)::bigint as room,
           case when s.starts >= r.rate then s.oldest + r.rate_seconds end as wait
      from tenure.limit_rules r
     cross join lateral (
        select coalesce(sum(s.jobs), 0) as starts, extract(epoch from min(s.ended) - (select c.now from clock c))::float8 as oldest
          from tenure.starts s
         where r.rate is not null and s.limit_group = r.name
           and s.ended > (select c.now from clock c) - make_interval(secs => r.rate_seconds)) s),
searched_queues as materialized (
    select s.queue, s.after
      from json_to_recordset(:queues::json) as s(queue text, after text)
      left join tenure.queues q on q.name = s.queue
     where q.paused_at is null and exists (select from holder h where h.takes) and (select l.names from locked l) <> '{}'),
walk(queue, origin, wrapped, limit_group, kind, capability, suspect, step) as (
    select s.queue, s.after, n.*, 1
      from searched_queues s
     cross join lateral (
        select n.*
          from ((select false as wrapped, j.limit_group, j.kind, coalesce(j.capability, '') as capability, j.crashes >= 2 as suspect
                   from tenure.jobs j
                  where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = s.queue and j.limit_group > s.after
                    and j.limit_group > ''  -- true of all; without it, the planner may expect to read the whole index
                  order by j.limit_group, j.kind, coalesce(j.capability, ''), (j.crashes >= 2)
                  limit 1)
                union all
                (select true, j.limit_group, j.kind, coalesce(j.capability, ''), j.crashes >= 2
                   from tenure.jobs j
                  where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = s.queue and j.limit_group > ''
                  order by j.limit_group, j.kind, coalesce(j.capability, ''), (j.crashes >= 2)
                  limit 1)) n
         order by n.wrapped
         limit 1) n
    union all
    select w.queue, w.origin, n.*, w.step + 1
      from walk w
     cross join lateral (
        select n.*
          from ((select w.wrapped, j.limit_group, j.kind, coalesce(j.capability, '') as capability, j.crashes >= 2 as suspect
                   from tenure.jobs j
                  where j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = w.queue
                    and (j.limit_group, j.kind, coalesce(j.capability, ''), (j.crashes >= 2)) > (w.limit_group, w.kind, w.capability, w.suspect)
                  order by j.limit_group, j.kind, coalesce(j.capability, ''), (j.crashes >= 2)
                  limit 1)
                union all
                (select true, j.limit_group, j.kind, coalesce(j.capability, ''), j.crashes >= 2
                   from tenure.jobs j
                  where not w.wrapped and j.position > 0 and j.limit_group is not null and j.held_group is null and j.queue = w.queue and j.limit_group > ''
                  order by j.limit_group, j.kind, coalesce(j.capability, ''), (j.crashes >= 2)
                  limit 1)) n
         order by n.wrapped
         limit 1) n
     where w.step < :steps::integer and (not n.wrapped or n.limit_group <= w.origin)),
-- The numbers say which sets share a limit group, a limit, or the room of a key. Jobs carry nothing but the number of their set: rows of
-- all these columns, sorted several times, would cost more than the claim itself.
job_sets as materialized (
    select w.queue, w.limit_group, w.kind, w.capability, w.suspect,
           row_number() over (order by w.step, w.queue) as no,
           dense_rank() over (order by w.queue, w.limit_group) as group_no,
           k.no as kind_no, q.no as queue_no,
           dense_rank() over (order by w.kind, g.kind_line) as kind_key_no,
           dense_rank() over (order by w.queue, g.queue_line) as queue_key_no,
           g.kind_line, g.queue_line,
           k.name as kind_limit, k.room as kind_room, k.rate as kind_rate, k.rate_seconds as kind_seconds,
           k.rate_per_key as kind_key_rate, k.rate_per_key_seconds as kind_key_seconds,
           q.name as queue_limit, q.room as queue_room, q.rate as queue_rate, q.rate_seconds as queue_seconds,
           q.rate_per_key as queue_key_rate, q.rate_per_key_seconds as queue_key_seconds,
           coalesce(k.fair, false) or coalesce(q.fair, false) as fair,
           coalesce(k.locked, true) and coalesce(q.locked, true) as locked,
           -- False: the limit groups were computed under other rules, or under none, and must be computed again.
           (k.name is not null) = (g.kind_line is not null) and (q.name is not null) = (g.queue_line <> '')
               and (k.name is null or case when k.key is null then g.kind_line = k.stem else starts_with(g.kind_line, k.stem) end)
               and (q.name is null or case when q.key is null then g.queue_line = q.stem else starts_with(g.queue_line, q.stem) end) as fits,
           kk.room as kind_key_room, qk.room as queue_key_room,
           least(:limit::integer, k.room, q.room, kk.room, qk.room) as room,
           greatest(k.wait, q.wait, kk.wait, qk.wait) as wait
      from walk w
     cross join lateral (
        select case when starts_with(w.limit_group, 'kind:') then split_part(w.limit_group, E'\n', 1) end as kind_line,
               split_part(w.limit_group, E'\n', case when starts_with(w.limit_group, 'kind:') then 2 else 1 end) as queue_line) g
      left join bounds k on k.name = 'kind:' || w.kind
      left join bounds q on q.name = 'queue:' || w.queue
     cross join lateral (
        select least(case when k.concurrency_per_key is not null then k.concurrency_per_key - coalesce(
                         ((select h.of_kinds from held_keys h) ->> (g.kind_line || E'\n' || w.kind))::bigint, 0) end,
                     k.rate_per_key - s.starts)::bigint as room,
               case when s.starts >= k.rate_per_key then s.oldest + k.rate_per_key_seconds end as wait
          from (select coalesce(sum(s.jobs), 0) as starts, extract(epoch from min(s.ended) - (select c.now from clock c))::float8 as oldest
                  from tenure.starts s
                 where k.rate_per_key is not null and s.limit_group = g.kind_line
                   and s.ended > (select c.now from clock c) - make_interval(secs => k.rate_per_key_seconds)) s) kk
     cross join lateral (
        select least(case when q.concurrency_per_key is not null then q.concurrency_per_key - coalesce(
                         ((select h.of_queues from held_keys h) ->> (g.queue_line || E'\n' || w.queue))::bigint, 0) end,
                     q.rate_per_key - s.starts)::bigint as room,
               case when s.starts >= q.rate_per_key then s.oldest + q.rate_per_key_seconds end as wait
          from (select coalesce(sum(s.jobs), 0) as starts, extract(epoch from min(s.ended) - (select c.now from clock c))::float8 as oldest
                  from tenure.starts s
                 where q.rate_per_key is not null and s.limit_group = g.queue_line
                   and s.ended > (select c.now from clock c) - make_interval(secs => q.rate_per_key_seconds)) s) qk
     where w.kind = any (:kinds::text[])
       and (w.capability = '' or w.capability = any (:capabilities::text[]))
       and (:which::text = 'all' or w.suspect = (:which::text = 'suspects'))),
-- With many sets, each is read only a little further than its share: to read them all to the end would cost more than the claim.
-- Locked jobs are skipped here, where others can take their places: chosen first and locked afterwards, a few locked jobs at the head of a
-- group would keep the group from running as many as it may.
share as materialized (
    select count(*) as sets, greatest(4, ceil(1.25 * :limit::integer / greatest(count(*), 1)))::bigint as jobs
      from job_sets u where u.fits and u.locked),
candidates as materialized (
    select u.no, u.group_no, u.kind_no, u.queue_no, u.kind_key_no, u.queue_key_no, u.fair, u.room,
           u.kind_room, u.queue_room, u.kind_key_room, u.queue_key_room, j.spot, j.priority, j.position /* passing over: , j.job_id */
      from job_sets u
     cross join lateral (
        select j.ctid as spot, j.priority, j.position /* passing over: , j.id as job_id */
          from tenure.jobs j
         where j.position > 0 and j.limit_group is not null and j.held_group is null and j.state = 'pending'
           and j.queue = u.queue and j.limit_group = u.limit_group and j.kind = u.kind
           and coalesce(j.capability, '') = u.capability and (j.crashes >= 2) = u.suspect
           and (j.expires_at is null or j.fence > 0 or j.expires_at > (select c.now from clock c))
           /* passing over: and j.id not in (select unnest(:refused::uuid[])) */
           /* passing over: and (:only::uuid[] is null or j.id = any (:only::uuid[])) */
         order by j.priority desc, j.position
         limit greatest(0, least(u.room, (select s.jobs from share s)))
           for no key update skip locked) j
     where u.fits and u.locked),
ranked as (
    select c.*, row_number() over (partition by c.group_no order by c.priority desc, c.position) as rank,
           case when c.fair then max(c.priority) over (partition by coalesce(c.kind_no, c.queue_no)) else c.priority end as weight
      from candidates c
     where (select s.sets from share s) > 1),
-- A single set is in order, and was read no further than there is room: nothing is left to decide.
ordered as materialized (
    select c.no, c.kind_no, c.queue_no, c.kind_key_no, c.queue_key_no, c.room, c.kind_room, c.queue_room, c.kind_key_room, c.queue_key_room,
           row_number() over () as turn, c.spot /* passing over: , c.job_id, c.priority, c.position */
      from candidates c
     where (select s.sets from share s) <= 1
    union all
    select r.no, r.kind_no, r.queue_no, r.kind_key_no, r.queue_key_no, r.room, r.kind_room, r.queue_room, r.kind_key_room, r.queue_key_room,
           row_number() over (order by r.weight desc, r.rank, r.no, r.position), r.spot /* passing over: , r.job_id, r.priority, r.position */
      from ranked r),
-- Of a set that was not read to its end, the next job may come before other candidates: these are left to the next claim.
known as materialized (
    select min(n.last) as turns
      from (select max(o.turn) as last, count(*) as jobs, min(o.room) as room from ordered o group by o.no) n
     where n.jobs < n.room and n.jobs >= (select s.jobs from share s)),
-- Whether sets that share a room have more candidates together than it holds.
tight as materialized (
    select exists (
        select from ordered o
         where (select s.sets from share s) > 1
         group by grouping sets ((o.kind_no), (o.queue_no), (o.kind_key_no), (o.queue_key_no))
        having case when grouping(o.kind_no) = 0 then count(*) > min(o.kind_room) when grouping(o.queue_no) = 0 then count(*) > min(o.queue_room)
                    when grouping(o.kind_key_no) = 0 then count(*) > min(o.kind_key_room) else count(*) > min(o.queue_key_room) end) as is_tight),
-- Then the same room must not be used twice: each job gets the number of jobs up to it under the same limit and key.
within_keys as (
    select l.*, row_number() over (partition by l.kind_key_no order by l.turn) as of_kind_key,
           row_number() over (partition by l.queue_key_no order by l.turn) as of_queue_key
      from ordered l
     where (select t.is_tight from tight t)),
within_limits as (
    select w.*, row_number() over (partition by w.kind_no order by w.turn) as of_kind, row_number() over (partition by w.queue_no order by w.turn) as of_queue
      from within_keys w
     where (w.kind_key_room is null or w.of_kind_key <= w.kind_key_room)
       and (w.queue_key_room is null or w.of_queue_key <= w.queue_key_room)),
with_room as (
    select o.no, o.turn, o.spot /* passing over: , o.job_id, o.priority, o.position */
      from ordered o
     where not (select t.is_tight from tight t)
    union all
    select w.no, w.turn, w.spot /* passing over: , w.job_id, w.priority, w.position */
      from within_limits w
     where (w.kind_room is null or w.of_kind <= w.kind_room) and (w.queue_room is null or w.of_queue <= w.queue_room)),
chosen as materialized (
    select r.*
      from with_room r
     where r.turn <= coalesce((select k.turns from known k), r.turn)
     order by r.turn
     limit :limit::integer),
claimed as (
    update tenure.jobs j
       set state = 'running', claim_id = :claim_id::uuid, fence = j.fence + 1, attempt = j.attempt + 1, held_group = j.limit_group,
           lease_until = case when :leases::text <> '{}'
                              then (select c.now from clock c) + make_interval(secs => (:leases::json ->> j.kind)::float8) end
      from chosen p
     where j.ctid = p.spot /* passing over: and not :peek::boolean */
    returning j.id, j.kind, j.queue, j.priority, j.position, j.attempt, j.max_attempts, j.crashes, j.fence, j.input::text as input,
              j.timeout, j.auth::text as auth, j.meta::text as meta, j.system::text as system, j.limit_group, p.no),
noted as (
    insert into tenure.claims (id, worker_id, at, job_ids)
    select :claim_id::uuid, :worker_id::uuid, (select k.now from clock k), array_agg(c.id) from claimed c having count(*) > 0),
tallied as (
    insert into tenure.tallies (queue, kind, what, jobs)
    select c.queue, c.kind, 'started', count(*) from claimed c group by c.queue, c.kind),
recorded_starts as (
    -- At rates up to 100, starts are stored with their exact time; above that, per hundredth of the window: then a window may end a
    -- hundredth too late, never too early.
    insert into tenure.starts as s (limit_group, began, ended, forget_at, jobs)
    select n.limit_group, b.began, b.ended, b.ended + make_interval(secs => n.seconds), sum(c.jobs)
      from (select c.no, count(*) as jobs from claimed c group by c.no) c
      join job_sets u on u.no = c.no
     cross join clock k
     cross join lateral (values (u.kind_limit, u.kind_rate, u.kind_seconds), (u.kind_line, u.kind_key_rate, u.kind_key_seconds),
                                (u.queue_limit, u.queue_rate, u.queue_seconds), (u.queue_line, u.queue_key_rate, u.queue_key_seconds))
                as n(limit_group, rate, seconds)
     cross join lateral (select make_interval(secs => n.seconds / 100) as part) p
     cross join lateral (
        select case when n.rate <= 100 then k.now else date_bin(p.part, k.now, 'epoch') end as began,
               case when n.rate <= 100 then k.now else date_bin(p.part, k.now, 'epoch') + p.part end as ended) b
     where n.rate is not null
     group by n.limit_group, b.began, b.ended, n.seconds
    on conflict (limit_group, began) do update
       set jobs = s.jobs + excluded.jobs, ended = greatest(s.ended, excluded.ended), forget_at = greatest(s.forget_at, excluded.forget_at)),
removed_starts as (
    delete from tenure.starts s
     where s.ctid = any (array(
        select o.ctid from tenure.starts o
         where o.forget_at < (select c.now from clock c) and exists (select from claimed)
         order by o.forget_at
         limit 200
           for update skip locked)))
select json_build_object(
       'holds', exists (select from holder),
       'seen', (select count(*) from job_sets),
       'chosen', (select count(*) from chosen),
       /* passing over: 'peeked', (select json_agg(json_build_object('job_id', p.job_id, 'kind', u.kind, 'queue', u.queue, 'priority', p.priority, 'position', p.position)) from chosen p join job_sets u on u.no = p.no where :peek::boolean), */
       -- Where each queue continues: after the last group that was served, or after the last one seen if none could be served.
       'cursors', (select json_object_agg(d.queue, coalesce(t.limit_group, d.limit_group))
                     from (select distinct on (w.queue) w.queue, w.limit_group from walk w order by w.queue, w.step desc) d
                     left join (select distinct on (u.queue) u.queue, u.limit_group
                                  from (select c.no, max(c.turn) as turn from chosen c group by c.no) c
                                  join job_sets u on u.no = c.no
                                 order by u.queue, c.turn desc) t on t.queue = d.queue),
       'more', (select count(*) from chosen) < :limit::integer
                   and (exists (select from walk w where w.step >= :steps::integer) or (select k.turns from known k) is not null),
       'around', exists (select from walk w where w.wrapped),
       'stale', exists (select from job_sets u where not u.fits),
       'wait', (select min(greatest(u.wait, 0)) from job_sets u where u.fits and u.locked
                   and least(u.kind_room, u.queue_room, u.kind_key_room, u.queue_key_room) <= 0 and u.wait is not null))::text as reply,
       null as id, null as kind, null as queue, null as priority, null as position, null as attempt, null as max_attempts,
       null as crashes, null as fence, null as input, null as timeout, null as auth, null as meta, null as system, null as limit_group
 union all
select null, c.id::text, c.kind, c.queue, c.priority, c.position, c.attempt, c.max_attempts, c.crashes, c.fence, c.input, c.timeout, c.auth,
       c.meta, c.system, c.limit_group
  from claimed c
