-- add_members: adds chains to an open group that has :expected of them, in their order (see the function).
-- Returns the new total. No row: it is not open, or another call adds members to it.
select a.total from tenure.add_members(:job_id::uuid, :members::uuid[], :expected::integer) as a(total)
