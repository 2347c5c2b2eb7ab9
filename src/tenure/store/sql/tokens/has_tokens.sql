-- has_tokens: whether an api token was ever created. Expired and revoked ones count, and their rows are kept: a server that needed a token
-- must not be open again when the last one ends.
select exists (select from tenure.tokens t where t.purpose = 'api') as found
