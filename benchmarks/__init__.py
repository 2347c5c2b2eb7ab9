"""What Tenure costs, measured on real processes: `python -m benchmarks`, or `make bench`.

Every figure is taken from one run on one machine, beside what it is compared with, so that noise meets both. A figure that
misses its target is reported, never hidden and never a failure.
"""
