-- find_shown: the current state of these jobs, as find_jobs, for lists and viewers: an input, output, auth or meta of more than :most
-- bytes, as it is stored, is left out and null instead, so that large jobs do not make an answer large. One that is stored compressed can be
-- a hundred times as large: it must be a quarter of that, and its text at most four times :most, which is read only then. If the system data
-- are that large, they are without the headers.
select a.id, a.kind, a.queue, a.state, a.priority, a.capability, a.attempt, a.max_attempts, a.crashes, a.fence, a.worker_id,
       a.enqueued_at, a.run_at, a.started_at, a.finished_at, a.error, shown.input, shown.output,
       a.timeout, a.key, a.parent_id, a.enqueued_by, shown.auth, shown.meta, shown.system, a.limit_group,
       a.progress_percent, a.progress_message, a.failed_at, a.chain_id, a.next_id, a.expires_at, a.heartbeat_at, shown.omitted
  from unnest(:ids::uuid[]) as i(id)
 cross join lateral (select a.* from tenure.all_jobs a where a.id = i.id limit 1) a
 cross join lateral (
    select max(v.text) filter (where v.name = 'input') as input, max(v.text) filter (where v.name = 'output') as output,
           max(v.text) filter (where v.name = 'auth') as auth, max(v.text) filter (where v.name = 'meta') as meta,
           coalesce(max(v.text) filter (where v.name = 'system'),
                    case when jsonb_typeof(a.system) = 'object' then (a.system - 'headers')::text end) as system,
           bool_or(v.value is not null and v.text is null and (v.name <> 'system' or v.value ? 'headers')) as omitted
      from (select v.name, v.value,
                   case when pg_column_compression(v.value) is null
                        then case when pg_column_size(v.value) <= :most::integer then v.value::text end
                        when pg_column_size(v.value) <= :most::integer / 4 and octet_length(v.value::text) <= 4 * :most::integer
                        then v.value::text end as text
              from (values ('input', a.input), ('output', a.output), ('auth', a.auth), ('meta', a.meta), ('system', a.system)) as v(name, value)) v) shown
 order by a.id desc
