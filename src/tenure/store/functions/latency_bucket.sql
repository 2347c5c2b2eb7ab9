-- latency_bucket: the histogram bucket of a duration. Buckets grow by the square root of two: bucket b holds durations of at most
-- 2 ^ (b / 2) ms. A percentile read from them is right to within a fifth, and a bucket of an hour is the sum of those of its minutes.
create or replace function tenure.latency_bucket(took interval) returns smallint
language sql immutable parallel safe
return case when took <= interval '1 ms' then 0 else least(63, ceil(2 * ln(extract(epoch from took)::float8 * 1000) / ln(2::float8))) end::smallint;
