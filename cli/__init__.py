"""The command line: `serve`, the tools for logs, the import of Kafka's data, and the health check."""
