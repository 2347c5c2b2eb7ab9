-- limit_rules: the limits in force. rate and rate_per_key are [starts, seconds]; stem is the prefix of the names of its groups.
create or replace view tenure.limit_rules as
select l.name,
       (l.rules ->> 'concurrency')::integer as concurrency,
       (l.rules ->> 'concurrency_per_key')::integer as concurrency_per_key,
       (l.rules #>> '{rate,0}')::integer as rate,
       (l.rules #>> '{rate,1}')::double precision as rate_seconds,
       (l.rules #>> '{rate_per_key,0}')::integer as rate_per_key,
       (l.rules #>> '{rate_per_key,1}')::double precision as rate_per_key_seconds,
       l.rules ->> 'key' as key,
       l.rules ->> 'otherwise' as otherwise,
       coalesce((l.rules ->> 'fair')::boolean, false) as fair,
       case when l.rules ? 'key' then l.name || '/' || (l.rules ->> 'key') || '=' else l.name end as stem
  from tenure.limits l
 where l.rules ?| array['concurrency', 'concurrency_per_key', 'rate', 'rate_per_key', 'fair'];
