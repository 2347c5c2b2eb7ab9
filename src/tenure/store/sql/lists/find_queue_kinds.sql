-- find_queue_kinds: the kinds that have finished jobs in this queue. Every statement that writes history also tallies what it wrote.
select c.kind from tenure.counters c where c.queue = :queue::text and c.what not in ('enqueued', 'started')
union
select t.kind from tenure.tallies t where t.queue = :queue::text and t.what not in ('enqueued', 'started')
