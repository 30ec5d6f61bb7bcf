"""Hand-written encoders of responses.

They exist for messages that carry or acknowledge records, because a writer of whole messages would copy the
records. They also exist for responses that repeat the same content for thousands of resources, which is
encoded once, and for messages that kio cannot write. Their bytes equal those of kio.

A response that carries or acknowledges records is a list of buffers; joined, they are the body without a
header. Records are passed through in the buffers in which they arrived. Partitions are given as the encoder's
own tuples. Errors are error codes, offsets and ids are plain integers; a value that does not fit its field is
a bug in Barnabas, and raises `struct.error`. The throttle time is 0 until `throttle` replaces it.
"""
