-- write_audit: appends entries to the audit log. Returns nothing.
insert into tenure.audit (request_id, phase, actor, ip, source, action, subject, request, before, after, status)
select e.request_id, e.phase, e.actor, e.ip, e.source, e.action, e.subject, e.request, e.before, e.after, e.status
  from jsonb_to_recordset(:entries::jsonb) as e(request_id uuid, phase text, actor text, ip text, source text, action text, subject text,
       request jsonb, before jsonb, after jsonb, status integer)
