-- probe_slots: replication slots that are not in use: the name, the bytes of WAL kept for it, and whether it retains dead rows.
select s.slot_name::text as name,
       coalesce(case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn) end, 0)::bigint as wal,
       s.xmin is not null as holds_rows
  from pg_replication_slots s
 where not s.active and not s.temporary
 order by s.slot_name
