"""The Kafka wire protocol of Barnabas: frames, headers, the APIs, record batches, errors.

kio has a class for each message of each API and version. Only this package reads and writes them: `codec` for
the broker, `client` for clients. Everything above uses the classes themselves, from `kio.schema`, in the
version that is the *shape* of an API. Two notes hold for all of them: kio reads the zero topic id as None;
structures within a lifted request may be those of another version, with the same fields.

kio's classes take long to load: all of them take a second. So they are imported only where an API is
implemented, and loaded at the API's first use. Nothing in this package does I/O, keeps time or interprets a
message. Pure.
"""
