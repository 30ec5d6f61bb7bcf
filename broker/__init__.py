"""The edge of the process and the composition of the broker.

`network/` is the way of a request to its handler and back; `handlers/` has one file per API. The state of
share-partitions is `share/` (pure), and what joins it to log and store is `leader/`. `produce/` and `fetch/`
are what those two requests need, `purgatory` is where requests wait. `internal_topics/` has the coordinators
at work. `config/`, `quotas/`, `metrics/` and `process/` (command line, logging, health) are what their names
say; `log_tool/` and `kafka_import/` are commands of their own. `broker` puts all of it together.
Nothing below this package knows of asyncio transports, signals or the command line.
"""
