"""The sessions of the product in this database."""

# A statement that takes seconds is asked by one more connection what it waits for: on a busy machine that may happen in any test.
OF_TENURE = """from pg_stat_activity
    where datname = current_database() and application_name like 'tenure %' and application_name <> 'tenure diagnose'"""
