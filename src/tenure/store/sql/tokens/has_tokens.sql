-- has_tokens: whether an api token is in force.
select exists (
    select from tenure.tokens t
     where t.purpose = 'api' and t.revoked_at is null and coalesce(t.expires_at > clock_timestamp(), true)) as found
