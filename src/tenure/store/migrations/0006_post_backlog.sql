-- Nothing to take away.
select 1;
