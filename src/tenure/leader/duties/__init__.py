"""The duties: each does one round when told, and says when it wants the next."""
