"""The broker: network, request handlers, configuration, and the node that connects all parts.

- `network/` carries a request to its handler and the answer back; `handlers/` has one file per API.
- `produce/` and `fetch/` have the parts of these two requests that are more than a handler.
- `sessions/` has the fetch sessions (KIP-227).
- `internal_topics/` connects the coordinators to the logs of Kafka's internal topics.
- `config/`, `quotas/` and `metrics/` have the settings, the client quotas, and the broker's counts.
- `node/` makes and closes a broker with all its parts.

The packages below this one know nothing of asyncio transports.
"""
