-- The fleet minute by minute, and the version of the code that each worker runs.

-- As the app names it (setting `app_version`); `version` is Tenure's own. Null: the app names none.
alter table tenure.workers add column app_version text;

-- The fleet once a minute, kept for a day. `busy`: jobs that run. `oldest_seconds`: how long the first pending job of the queues that are
-- not paused has waited. `queues` has those with pending jobs: [{"name", "pending", "oldest"}], the hundred that wait longest.
create table tenure.fleet_minutes (
    minute         timestamptz not null,
    workers        integer     not null,
    slots          integer     not null,
    busy           integer     not null,
    pending        bigint      not null,
    oldest_seconds real        not null,
    memory_mb      real,
    app_versions   jsonb       not null,
    queues         jsonb       not null,
    constraint fleet_minutes_pkey primary key (minute)
);
