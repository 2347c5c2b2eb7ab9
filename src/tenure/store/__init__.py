"""The database access: the only package with SQL or a driver.

Statements live in `sql/<noun>/<verb>_<noun>.sql`, one a file, each headed by its contract. Python code builds `Query`
values; a `Link` runs them on its own connection. This package guarantees:

- every state change is guarded by claim, worker or term inside its statement;
- the clock is PostgreSQL's; `:now` exists so that tests can move it;
- a lost connection is reported as `StoreUnavailable`, a refused value as the driver's own error, and never mixed up.
"""
