"""The base of all code that waits: clocks, deadlines, completions, delayed requests, long work, the log.

Nothing here knows about Kafka's records or groups. A broker creates one object of each kind.
"""
