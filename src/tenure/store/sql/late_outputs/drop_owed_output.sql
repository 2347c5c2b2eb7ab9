-- drop_owed_output: removes the mark of owe_output, because the run of this claim has ended without an output to add.
delete from tenure.watches w where w.job_id = :claim_id::uuid
