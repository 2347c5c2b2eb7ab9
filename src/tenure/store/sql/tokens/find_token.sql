-- find_token: the token with this hash, if it is in force: not expired, not revoked, and for a session neither is its api token.
-- Returns for how many seconds it still is, by the clock of the server; null: without end.
select t.id, t.parent_id, t.name, t.purpose, t.scope, t.queues, t.kinds, t.rate,
       extract(epoch from least(t.expires_at, p.expires_at) - clock_timestamp())::float8 as seconds_left,
       coalesce(t.last_used_at < clock_timestamp() - interval '5 minutes', true) as unused
  from tenure.tokens t
  left join tenure.tokens p on p.id = t.parent_id
 where t.hash = :hash::text
   and t.revoked_at is null and coalesce(t.expires_at > clock_timestamp(), true)
   and (t.parent_id is null or (p.id is not null and p.revoked_at is null and coalesce(p.expires_at > clock_timestamp(), true)))
