"""Other job queues on PostgreSQL, measured beside Tenure: `python -m benchmarks --peers`.

Each `*_peer.py` is a script that runs in a virtual environment of its own and speaks the protocol of `protocol.py`.
"""
