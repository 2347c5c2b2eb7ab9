-- signal_job: sends an event to one workflow, if it is live. Its key is the id of the job.
-- Returns whether it was sent.
with sent as (
    insert into tenure.events (name, key, payload, by)
    select :name::text, j.id::text, :payload::jsonb, coalesce(:by::text, session_user::text)
      from tenure.jobs j
     where j.id = :id::uuid
    returning id)
select exists (select from sent) as sent
