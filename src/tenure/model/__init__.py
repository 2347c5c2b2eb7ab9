"""Values and rules. No I/O, no clock, no driver.

Everything here can be tested without a database and imported quickly.
"""
