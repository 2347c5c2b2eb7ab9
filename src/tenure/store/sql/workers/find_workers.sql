-- find_workers: every worker, whether its lease holds, and how many jobs it holds.
/* include: all_workers */
