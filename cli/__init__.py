"""The command line: `serve`, the tools, the import of Kafka's data, and the health check.

`commands/` has one file per command, `process/` the process around a broker. `log_tool/`, `kafka_import/`,
`group_ranges/` and `dead_letters/` have the work of the commands `log`, `import`, `ranges` and `dlq`.
"""
