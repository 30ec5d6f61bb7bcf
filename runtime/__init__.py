"""The base of everything that waits: times, deadlines, completions, delayed requests, long work, log lines.

Nothing here knows about Kafka's records or groups. A broker creates one object of each kind.
"""
