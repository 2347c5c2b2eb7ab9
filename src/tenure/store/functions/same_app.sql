-- same_app: whether two sets of kinds belong to one app, perhaps to two versions of it: at least half of the smaller set is in both.
create or replace function tenure.same_app(one text[], other text[]) returns boolean
language sql immutable parallel safe
return one is null or other is null
    or 2 * (select count(*) from unnest(one) as k(kind) where k.kind = any (other)) >= least(cardinality(one), cardinality(other));
