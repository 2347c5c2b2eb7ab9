-- find_blocked: how many chains a job waits for or has waited for, how many of them have not ended, the first that did not complete, and
-- whether more are being added. While they are, that counts as one that is missing: it is taken off here.
select d.total, coalesce(d.missing, 0) - d.open::integer as missing, d.failed, d.open from tenure.blocked d where d.job_id = :job_id::uuid
