-- list_audit: entries of the audit log, newest first, before the entry :before, at most :limit.
select a.id, a.at, a.request_id, a.phase, a.actor, a.ip, a.action, a.subject, a.request::text, a.before::text, a.after::text, a.status,
       a.source
  from tenure.audit a
 where a.id < :before::bigint
 order by a.id desc
 limit :limit::integer
