-- identify_database: tells this database from all others, whatever it is called and by whatever way it is reached.
select tenure.database_id()
