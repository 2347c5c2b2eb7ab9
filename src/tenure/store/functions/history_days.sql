-- history_days: the days for which history has a partition. A partition is named after its last day, and usually holds only that day.
create or replace function tenure.history_days() returns setof date
language sql stable
begin atomic
    select to_date(right(c.relname, 8), 'YYYYMMDD')
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'tenure.history'::regclass and c.relname ~ '^history_[0-9]{8}$';
end;
