-- hasten_retries: makes jobs that wait for another attempt due now, so that a test does not wait for their backoff.
-- Changes no state: the stager promotes them. Returns how many there are.
with hastened as (
    update tenure.jobs j set run_at = now() where j.position = 0 and j.state = 'retry' and j.run_at > now() returning 1)
select count(*) from hastened
