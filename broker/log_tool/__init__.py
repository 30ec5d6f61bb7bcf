"""`barnabas log dump|describe|verify`: looking into logs on the disk, with or without a broker.

Everything is read with the broker's own decoders, opened for reading alone and never locked. A directory that
Apache Kafka wrote is read as well. Nothing here repairs anything: that is recovery's, at a broker's start.
"""
