-- withdraw_app: removes the declaration of a supervisor that ends. Returns nothing.
delete from tenure.declarations d where d.supervisor_id = :supervisor_id::uuid
