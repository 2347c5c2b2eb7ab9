-- Nothing to remove.
select 1;
