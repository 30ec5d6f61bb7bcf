"""`barnabas log`: dump, describe and verify are for looking into logs on the disk, with or without a broker.

Everything is read with the broker's own decoders, opened for reading alone and never locked. A directory that
Apache Kafka wrote is read as well. They repair nothing: that is recovery's, at a broker's start. Only
`drop-damaged` writes, where a broker cannot go on by itself, and locks the data directory for that.
"""
