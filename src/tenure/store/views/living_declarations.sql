-- living_declarations: declarations of supervisors that are alive. A process registers its workers only after it has declared, so a
-- recent declaration counts even without workers.
create or replace view tenure.living_declarations as
select d.supervisor_id, d.owner, d.kinds, d.schedules
  from tenure.declarations d
 where d.declared_at > clock_timestamp() - interval '1 minute'
    or exists (select from tenure.workers w
                where w.supervisor_id = d.supervisor_id and w.died_at is null and w.expires_at > clock_timestamp());
