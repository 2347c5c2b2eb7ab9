"""The report of a job: its whole history, read by one statement.

What went as planned is derived from the job's own row; only incidents have rows of their own. A report therefore holds only what
is known: runs of which nothing is stored any more are counted (`untold`), times that were not recorded are None.

- `life`: the values of a report          - `derive`: from rows to a report, pure
- `gather`: reads the store               - `text`, `html`: for a terminal, for a browser
"""
