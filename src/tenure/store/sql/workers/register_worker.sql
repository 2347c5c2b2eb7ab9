-- register_worker: adds a worker process, with a lease. It drains if another process of its supervisor does.
insert into tenure.workers (id, supervisor_id, host, pid, queues, kinds, capabilities, concurrency, version, app_version, name, schema_version, draining_at, expires_at)
values (:id::uuid, :supervisor_id::uuid, :host, :pid::integer, :queues::jsonb, :kinds::jsonb, :capabilities::jsonb, :concurrency::integer,
        :version, :app_version::text, :name, :schema_version::integer,
        (select max(w.draining_at) from tenure.workers w where w.supervisor_id = :supervisor_id::uuid),
        coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => :ttl::float8))
on conflict (id) do nothing
