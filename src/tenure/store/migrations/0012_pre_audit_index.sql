-- outside a transaction
-- Finds the entries of the audit log whose retention has ended.
drop index concurrently if exists tenure.audit_at;
create index concurrently audit_at on tenure.audit (at);
