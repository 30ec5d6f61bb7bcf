"""The edge of the process and the composition of the broker.

Server and connections, dispatch to the handlers (one file per API in `handlers/`), the state of
share-partitions (`share/`, pure) and what joins it to log and store (`leader/`), the purgatory where requests
wait, configuration, metrics, logging and the command line.
Nothing below this package knows of asyncio transports, signals or the command line.
"""
