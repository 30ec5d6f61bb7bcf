"""The command line: `serve`, the tools for logs, the import of Kafka's data, and the health check.

`commands/` has one file per command, `process/` the process around a broker, `log_tool/` and `kafka_import/`
the work of these two commands.
"""
