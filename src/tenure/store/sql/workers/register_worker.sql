-- register_worker: adds a worker process, with a lease.
insert into tenure.workers (id, supervisor_id, host, pid, queues, kinds, capabilities, concurrency, version, name, schema_version, expires_at)
values (:id::uuid, :supervisor_id::uuid, :host, :pid::integer, :queues::jsonb, :kinds::jsonb, :capabilities::jsonb, :concurrency::integer,
        :version, :name, :schema_version::integer,
        coalesce(:now::timestamptz, clock_timestamp()) + make_interval(secs => :ttl::float8))
on conflict (id) do nothing
