-- find_leaders: the holder of each duty, its term, whether its lease holds, and whether it is stuck.
/* include: all_leaders */
