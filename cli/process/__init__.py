"""The process around a broker: file descriptors, the ready file, the health check, errors of directories."""
