"""The duties. Each does one round when it is called, and returns when it wants the next."""
