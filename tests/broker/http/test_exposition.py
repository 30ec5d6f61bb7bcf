"""The metrics in the formats of Prometheus, read by its own parsers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import cast

import pytest
from prometheus_client import parser
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser

from barnabas.broker.http import exposition
from barnabas.broker.http.exposition import MERGED, OTHERS, expose
from barnabas.broker.http.metric_help import help_texts
from barnabas.runtime.metrics import Histogram, Metrics
from tests.broker.http.http_lab import open_http_lab

_READ = "text_string_to_metric_families"
"""The parser's function has no types."""

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


async def families(metrics: Metrics, accept: str = OPENMETRICS) -> dict[str, Metric]:
    body, _ = await expose(metrics, accept)
    text = body.decode()
    if accept == OPENMETRICS:
        read = cast("Callable[[str], Iterable[Metric]]", vars(openmetrics_parser)[_READ])
        return {one.name: one for one in read(text)}
    return {one.name: one for one in parser.text_string_to_metric_families(text)}


def values(family: Metric) -> dict[tuple[str, ...], float]:
    """The samples by their labels' values."""
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


@pytest.mark.parametrize(
    ("accept", "content_type", "end"),
    [
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8", b"# EOF\n"),
        ("", "text/plain; version=0.0.4; charset=utf-8", b"\n"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8", b"\n"),
    ],
)
async def test_the_format_follows_the_request(accept: str, content_type: str, end: bytes) -> None:
    async with open_http_lab() as http:
        response = await http.get("/metrics", Accept=accept)
        assert response.headers["content-type"].startswith(content_type)
        assert response.content.endswith(end)
        assert response.content.count(b"# EOF") == (end == b"# EOF\n")


@pytest.mark.parametrize("accept", [OPENMETRICS, ""])
async def test_each_metric_has_its_type(accept: str) -> None:
    metrics, histogram = Metrics(), Histogram((1, 10))
    for value in (0, 1, 10, 11):
        histogram.observe(value)
    metrics.counter("requests_total", kind="a").add(3)
    metrics.gauge("level", lambda: 7.5)
    metrics.histograms("wait_ms", lambda: [({"group": "g"}, histogram)])
    found = await families(metrics, accept)
    assert [found[name].type for name in ("requests", "level", "wait_ms")] == [
        "counter",
        "gauge",
        "histogram",
    ]
    assert values(found["requests"]) == {("a",): 3}
    assert values(found["level"]) == {(): 7.5}
    buckets = {
        sample.labels["le"]: sample.value for sample in found["wait_ms"].samples if "le" in sample.labels
    }
    assert buckets == {"1.0": 2, "10.0": 3, "+Inf": 4}
    sums = {sample.name: sample.value for sample in found["wait_ms"].samples if "le" not in sample.labels}
    assert sums == {"wait_ms_count": 4, "wait_ms_sum": 22}


@pytest.mark.parametrize("accept", [OPENMETRICS, ""])
async def test_help_is_the_first_sentence_on_the_page_of_metrics(accept: str) -> None:
    metrics = Metrics()
    metrics.counter("kafka_server_sharegroupmetrics_deadletterqueuerecordcount_total", group="g")
    metrics.gauge("barnabas_share_lag_records", lambda: 1)
    metrics.gauge("of_a_program_that_embeds_the_broker", lambda: 1)
    found = {
        name.removesuffix("_total"): family for name, family in (await families(metrics, accept)).items()
    }
    assert found["kafka_server_sharegroupmetrics_deadletterqueuerecordcount"].documentation == (
        "Dead letters written."
    )
    assert found["barnabas_share_lag_records"].documentation == (
        "Records that are not final yet, with those that members hold."
    )
    assert found["of_a_program_that_embeds_the_broker"].documentation == ""


def test_every_help_is_one_plain_line() -> None:
    texts = help_texts()
    assert len(texts) > 60
    for name, text in texts.items():
        assert re.fullmatch(r"[A-Z0-9][^\\\"`\[\]\n]{5,}\.", text), (name, text)


async def test_any_text_is_a_label() -> None:
    metrics, group = Metrics(), 'a "b" \\ c\nd ä'
    metrics.family("lag", lambda: [({"group": group}, 1)])
    assert values((await families(metrics))["lag"]) == {(group,): 1}


async def test_series_beyond_the_bound_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "SERIES_MAX", 3)
    metrics, histogram = Metrics(), Histogram((1,))
    histogram.observe(5)
    groups = ["d", "b", "a", "c", "e"]
    metrics.family("lag", lambda: [({"group": group, "topic": "t"}, 10) for group in groups])
    metrics.histograms("wait_ms", lambda: [({"group": group}, histogram) for group in groups])
    ages = dict(zip(groups, (5, 1, 2, 7, 6), strict=True))
    metrics.family("wait_age_ms", lambda: [({"group": group}, age) for group, age in ages.items()])
    metrics.family("few", lambda: [({"group": group}, 1) for group in groups[:3]])
    found = await families(metrics)
    assert values(found["lag"]) == {("a", "t"): 10, ("b", "t"): 10, (OTHERS, OTHERS): 30}
    counts = {
        sample.labels["group"]: sample.value
        for sample in found["wait_ms"].samples
        if sample.name == "wait_ms_count"
    }
    assert counts == {"a": 1, "b": 1, OTHERS: 3}
    assert values(found["wait_age_ms"]) == {("a",): 2, ("b",): 1, (OTHERS,): 7}
    assert values(found["few"]) == {("d",): 1, ("b",): 1, ("a",): 1}
    assert values(found[MERGED]) == {("lag",): 3, ("wait_age_ms",): 3, ("wait_ms",): 3}


async def test_every_metric_of_a_broker_can_be_parsed() -> None:
    async with open_http_lab() as http:
        topic_id = await http.lab.create_topic("t")
        await http.lab.produce(topic_id, 3)
        for accept in (OPENMETRICS, ""):
            found = await families(http.lab.broker.metrics, accept)
            snapshot = http.lab.broker.metrics.snapshot()
            names = {sample.name for family in found.values() for sample in family.samples}
            assert {key.partition("{")[0] for key in snapshot} <= names
            assert "process_resident_memory_bytes" in names
