-- clean_sessions: deletes sessions that have expired, at most 100. Run when a session starts, so their number stays bounded.
delete from tenure.tokens t
 where t.id in (select s.id from tenure.tokens s
                 where s.purpose = 'session' and s.expires_at < clock_timestamp()
                 order by s.expires_at limit 100 for update skip locked)
