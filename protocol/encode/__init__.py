"""Encoders written by hand: of responses, as the broker writes them, and of requests, as a client does.

They are of the messages that records pass through or are acknowledged by: a writer of whole messages would
copy the records. So are those of answers that say the same of thousands of resources, which is encoded once,
and of what kio cannot write. Byte for byte they write what kio does.

A response that carries or acknowledges records is a list of buffers, which put together are its body,
without a header: records are passed through as the buffers that they came in. Partitions are given as the
encoder's own tuples. Errors are error codes, offsets and ids plain integers; one that does not fit its field
is our bug, and `struct.error`. The throttle time is 0 until `throttle` puts another one in.
"""
