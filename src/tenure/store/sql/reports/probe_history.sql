-- probe_history: for how many days ahead history has partitions; as JSON, the days without one, from today to the last partition (at
-- least to tomorrow); and the number of finished jobs in the default partition, counted up to 1000.
with attached as materialized (
    select to_date(right(c.relname, 8), 'YYYYMMDD') as day
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'tenure.history'::regclass and c.relname ~ '^history_[0-9]{8}$'),
today as (
    select (clock_timestamp() at time zone 'UTC')::date as day)
select coalesce((select max(a.day) from attached a) - t.day, -1) as days_ahead,
       (select json_agg(d.day order by d.day)::text
          from (select t.day + n as day
                  from generate_series(0, greatest(1, coalesce((select max(a.day) from attached a) - t.day, 1))) as n
                except
                select a.day from attached a) d) as holes,
       (select count(*) from (select from tenure.history_default limit 1000) d) as unplaced
  from today t
