-- owe_output: the run of this claim completes its job in this transaction, and adds the output after its handler has returned.
-- Until then `result()` waits. The mark is a watch with the id of the claim: a leftover mark is removed with old watches.
insert into tenure.watches (job_id, until)
values (:claim_id::uuid, clock_timestamp() + make_interval(secs => :seconds::float8))
on conflict (job_id) do nothing
returning job_id::text
