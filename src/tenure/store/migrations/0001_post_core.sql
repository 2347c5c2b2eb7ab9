-- Nothing to take away after the first version. A post file removes what only older workers needed.
select 1;
