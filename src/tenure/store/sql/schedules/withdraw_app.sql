-- withdraw_app: a supervisor that ends does not stand for the schedules of its code any more. Returns nothing.
delete from tenure.declarations d where d.supervisor_id = :supervisor_id::uuid
