-- What coordination needs: counts by the minute, latencies, retention by kind.

-- Latencies are counted by buckets that grow by the square root of two: bucket b holds what took at most 2 ^ (b / 2) ms. So a
-- percentile read from them is right to within a fifth, and a bucket of an hour is the sum of those of its minutes.
create function tenure.latency_bucket(took interval) returns smallint
language sql immutable parallel safe
return case when took <= interval '1 ms' then 0 else least(63, ceil(2 * ln(extract(epoch from took)::float8 * 1000) / ln(2::float8))) end::smallint;

alter table tenure.tallies
    add column waited_bucket smallint,
    add column ran_bucket    smallint;

-- As counters, by the minute, for a day.
create table tenure.minutes (
    minute timestamptz not null,
    queue  text        not null,
    kind   text        not null,
    what   text        not null,
    jobs   bigint      not null,
    waited interval    not null default '0',
    ran    interval    not null default '0',
    constraint minutes_pkey primary key (minute, queue, kind, what)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- How long jobs that finished had waited and ran: by the minute for a day, by the hour for as long as counters.
create table tenure.latencies (
    at      timestamptz not null,
    span    text        not null,
    queue   text        not null,
    kind    text        not null,
    measure text        not null,
    bucket  smallint    not null,
    jobs    bigint      not null,
    constraint latencies_pkey primary key (span, at, queue, kind, measure, bucket),
    constraint latencies_span check (span in ('minute', 'hour') and measure in ('waited', 'ran'))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- For how long finished jobs of a kind are kept, where that is not as long as all others.
create table tenure.retentions (
    kind text     not null primary key,
    keep interval not null
);
