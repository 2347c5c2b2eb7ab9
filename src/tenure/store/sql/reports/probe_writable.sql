-- probe_writable: whether this connection can enqueue and change jobs: the server is not a standby, and the account has the rights.
select not pg_is_in_recovery()
       and has_table_privilege('tenure.jobs', 'update') and has_table_privilege('tenure.audit', 'insert') as writable
