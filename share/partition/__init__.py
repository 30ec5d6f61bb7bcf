"""The state of one share-partition: the records in flight and their owners (KIP-932).

Pure and synchronous: time is an argument, nothing is read or written, and every change that must be recorded
is returned as a `Decision`.
"""
