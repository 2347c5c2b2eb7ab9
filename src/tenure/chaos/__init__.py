"""Proof by faults: real workers, a real PostgreSQL, a seeded nemesis, and a checker that judges what was recorded."""
