-- Workers have a name, and the schema version that their code knows. Workers of earlier versions leave both empty.
alter table tenure.workers
    add column name           text,
    add column schema_version integer;
