"""The report of a job: one object with its whole life, asked for by one statement.

What went as planned is derived from the job's own row; only what did not has rows of its own. A report therefore says what is
known, and no more: runs of which nothing is kept any more are counted (`untold`), times that nobody wrote down are None.

- `life`: what a report is made of        - `derive`: from rows to a life, pure
- `gather`: asks the store                - `text`, `html`: for a terminal, for a browser
"""
