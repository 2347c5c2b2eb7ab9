-- close_group: no more chains are added to an open group.
-- Returns its total. No row: it is not open.
select c.total from tenure.close_group(:job_id::uuid) as c(total)
