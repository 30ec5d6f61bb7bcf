"""The process around a broker: its run and end, file descriptors, the ready file, the health check, errors of
the data directory.
"""
