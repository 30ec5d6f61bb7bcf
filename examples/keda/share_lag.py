"""Serves the lag of a share group as JSON, for KEDA's scaler `metrics-api` (`scaled-object.yaml`).

    python share_lag.py --bootstrap 127.0.0.1:9092 --listen 127.0.0.1:8080
    curl http://127.0.0.1:8080/groups/workers
    {"group": "workers", "lag": 17, "partitions": [{"topic": "orders", "partition": 0, "lag": 17}]}

The lag counts the records that are not done, with those that consumers hold at the moment. So KEDA does not
stop the last consumer while it works. A group that has not begun to read, and a broker that does not answer,
are HTTP errors. KEDA then uses the `fallback` of the ScaledObject.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote

from barnabas.client import ConsumerError, ShareGroupAdmin, SharePosition, TopicPartition

REQUEST_TIMEOUT_MS = 3_000
"""Less than KEDA's own timeout for a metric, so that KEDA gets the reason of an error."""
GROUPS_PATH = "/groups/"


class Answer(NamedTuple):
    """An HTTP answer; the body is JSON."""

    status: HTTPStatus
    body: dict[str, Any]


async def lag_of(bootstrap: str, group: str) -> Answer:
    """The lag of one group, asked from the broker now."""
    try:
        async with ShareGroupAdmin(
            bootstrap,
            group=group,
            connect_timeout_ms=REQUEST_TIMEOUT_MS,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        ) as admin:
            positions = await admin.positions()
    except ConsumerError as error:
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})
    return answer(group, positions)


def answer(group: str, positions: dict[TopicPartition, SharePosition]) -> Answer:
    """The sum over the partitions, and each of them."""
    lags = {place: one.lag for place, one in sorted(positions.items()) if one.lag is not None}
    if not lags:
        return Answer(
            HTTPStatus.NOT_FOUND, {"error": f"The share group {group} has not begun to read a partition."}
        )
    return Answer(
        HTTPStatus.OK,
        {
            "group": group,
            "lag": sum(lags.values()),
            "partitions": [{**place._asdict(), "lag": lag} for place, lag in lags.items()],
        },
    )


def handler(bootstrap: str) -> type[BaseHTTPRequestHandler]:
    """The handler of requests; each asks the broker over a connection of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """The name is that of `http.server`."""
            group = unquote(self.path.removeprefix(GROUPS_PATH))
            if not self.path.startswith(GROUPS_PATH) or not group:
                self._send(Answer(HTTPStatus.NOT_FOUND, {"error": f"Ask for {GROUPS_PATH}GROUP."}))
            else:
                self._send(asyncio.run(lag_of(bootstrap, group)))

        def _send(self, sent: Answer) -> None:
            body = json.dumps(sent.body).encode()
            self.send_response(sent.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the lag of share groups as JSON.")
    parser.add_argument("--bootstrap", metavar="HOST:PORT,...", default="127.0.0.1:9092")
    parser.add_argument("--listen", metavar="HOST:PORT", default="127.0.0.1:8080")
    options = parser.parse_args()
    host, _, port = options.listen.rpartition(":")
    with ThreadingHTTPServer((host, int(port)), handler(options.bootstrap)) as server:
        print(f"serves http://{host}:{server.server_port}{GROUPS_PATH}GROUP", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
