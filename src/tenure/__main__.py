"""`python -m tenure`."""

from tenure.cli import main

main()
