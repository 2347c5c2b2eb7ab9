"""Live updates: what viewers subscribe to, one look-up for all of them, and an outbox for each.

A viewer first gets the current state of a topic, then each later state that differs. States replace each other: a viewer that
reads slowly skips states, but always ends with the newest. So nothing is stored for viewers, and a reconnect misses nothing.
"""
