"""Fault injection: real workers, a real PostgreSQL, faults drawn from a seed, and a checker that judges the record."""
