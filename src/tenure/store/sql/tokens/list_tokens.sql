-- list_tokens: the api tokens, newest first, at most :limit; with :all, revoked and expired ones as well.
select t.id, t.name, t.scope, t.queues, t.kinds, t.rate, t.created_at, t.created_by, t.expires_at, t.revoked_at, t.revoked_by,
       t.last_used_at, t.revoked_at is null and coalesce(t.expires_at > clock_timestamp(), true) as active
  from tenure.tokens t
 where t.purpose = 'api'
   and (:all::boolean or (t.revoked_at is null and coalesce(t.expires_at > clock_timestamp(), true)))
 order by t.created_at desc, t.id
 limit :limit::integer
