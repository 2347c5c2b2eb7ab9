-- emit_events: sends events, as a JSON array. Returns how many.
select tenure.emit(:events::text) as sent
