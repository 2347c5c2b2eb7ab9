-- Indexes of history, for lists, children and keys. Apart from the tables, so that only settling waits while they are built:
-- outcomes are kept by their workers meanwhile, and jobs are taken in and claimed as ever.

-- Lists go by id, newest first, within a kind; what is rare (trouble, children, keys) has an index that costs the rest nothing.
create index history_kind on tenure.history (kind, id);
create index history_unhappy on tenure.history (state, id) where state <> 'completed';
create index history_parent on tenure.history (parent_id, id) where parent_id is not null;
create index history_key on tenure.history (kind, key, id) where key is not null;
