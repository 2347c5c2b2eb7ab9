-- identify_database: distinguishes this database from all others, even under another name or address.
select tenure.database_id()
