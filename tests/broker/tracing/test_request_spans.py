"""Spans of requests, as an exporter gets them."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from barnabas.broker.handlers.lazy_handlers import LazyHandlers
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.tracing.opening import RequestTracing, open_tracing
from tests.conformance.harness import Lab, open_lab

NS_PER_MS = 1_000_000


def trace_requests(lab: Lab) -> InMemorySpanExporter:
    """From now on the lab's requests are spans in the exporter."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    broker = lab.broker
    lab.dispatcher = Dispatcher(
        LazyHandlers(broker),
        broker.metrics,
        broker.clock,
        broker.quotas,
        broker.long_work,
        make_measures=RequestTracing(provider, broker.clock.wall_ms).make_measures,
    )
    return exporter


def milliseconds(span: ReadableSpan) -> int:
    assert span.start_time is not None and span.end_time is not None
    return (span.end_time - span.start_time) // NS_PER_MS


async def test_a_request_is_a_span_with_the_name_of_its_api() -> None:
    async with open_lab() as lab:
        exporter = trace_requests(lab)
        await lab.client().ask("list_groups")
        [span] = exporter.get_finished_spans()
        assert (span.name, span.kind.name) == ("ListGroups", "SERVER")
        assert span.attributes == {
            "messaging.system": "kafka",
            "barnabas.local_ms": 0,
            "barnabas.remote_ms": 0,
            "barnabas.throttle_ms": 0,
        }
        assert span.end_time == lab.clock.wall_ms() * NS_PER_MS


async def test_the_span_of_a_request_that_waits_has_its_wait() -> None:
    async with open_lab() as lab:
        topic_id = await lab.create_topic("t")
        exporter = trace_requests(lab)
        asked: dict[str, Any] = {
            "max_wait": 300,
            "min_bytes": 1,
            "max_bytes": 1_000,
            "session_epoch": -1,
            "topics": [
                {
                    "topic_id": topic_id,
                    "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}],
                }
            ],
        }
        client = lab.client()
        waiting = client.send("fetch", **asked)
        await lab.advance(300)
        await client.answered(waiting)
        [span] = [one for one in exporter.get_finished_spans() if one.name == "Fetch"]
        assert milliseconds(span) == 300
        assert span.attributes is not None
        assert span.attributes["barnabas.remote_ms"] == 300


async def test_the_metrics_are_the_same_with_spans() -> None:
    async with open_lab() as lab:
        trace_requests(lab)
        await lab.client().ask("list_groups")
        snapshot = lab.broker.metrics.snapshot()
        assert snapshot["kafka_network_requestmetrics_totaltimems_count{request=ListGroups}"] == 1


@contextmanager
def collector() -> Generator[tuple[str, list[bytes]]]:
    """A server that takes spans: its address, and the bodies of its requests."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """The name is that of `http.server`."""
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Nothing is logged."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()
        thread.join()


async def test_spans_are_sent_where_the_environment_says_and_the_last_ones_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with collector() as (address, bodies):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
        tracing = open_tracing(lambda: 1_700_000_000_000)
        tracing.make_measures(16).answered_at_once(3, 0)
        await tracing.close()
    sent = b"".join(bodies)
    assert all(word in sent for word in (b"ListGroups", b"barnabas", b"deployment.environment"))
