"""Encoders of the responses that records pass through or are acknowledged by, written by hand.

kio's writer would copy the records, and takes a Python call for every field. Byte for byte these write the
same.

Each answers a list of buffers, which put together are the response's body, without a header: records are
passed through as the buffers that they came in. Partitions are given as the encoder's own tuples. Errors
are error codes, offsets and ids plain integers; one that does not fit its field is our bug, and
`struct.error`.
"""
