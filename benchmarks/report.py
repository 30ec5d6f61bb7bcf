"""Results as a table for people, and as JSON for later comparison."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measurement import SUBJECT, Results

RESULTS = Path(__file__).resolve().parent / "results"


def table(results: Results, brokers: Sequence[str]) -> str:
    """Medians by broker, Barnabas's ratio to each peer, and the targets; one line per metric."""
    peers = [name for name in brokers if name != SUBJECT]
    header = [results.workload, *brokers, *(f"/ {name}" for name in peers), "targets"]
    rows = [header, *(_row(results, metric, brokers, peers) for metric in results.metrics())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    failures = [f"{name} failed: {reason}" for name, reason in results.failures.items()]
    return "\n".join([*(_line(row, widths) for row in rows), *failures, ""])


def _row(results: Results, metric: str, brokers: Sequence[str], peers: Sequence[str]) -> list[str]:
    medians = {name: results.median(name, metric) for name in brokers}
    ours = medians.get(SUBJECT)
    ratios = [f"{ours / theirs:.2f}" if ours and (theirs := medians[name]) else "-" for name in peers]
    return [metric, *(_number(medians[name]) for name in brokers), *ratios, _targets(results, metric)]


def _targets(results: Results, metric: str) -> str:
    verdicts: list[str] = []
    for target in results.targets:
        if target.metric == metric:
            value = results.value_for(target)
            verdict = "?" if value is None else "pass" if target.met(value) else "FAIL"
            verdicts.append(f"{target} {verdict}")
    return ", ".join(verdicts)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *middle, last = row
    cells = [cell.rjust(width) for cell, width in zip(middle, widths[1:-1], strict=True)]
    return "  ".join([first.ljust(widths[0]), *cells, last])


def write_json(results: Mapping[str, Results]) -> Path:
    """Write every run with a description of the machine. Returns the file's path."""
    now = datetime.now(UTC)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    content = {
        "time": now.isoformat(),
        "machine": platform.platform(),
        "processors": os.cpu_count(),
        "load_average": os.getloadavg(),
        "python": platform.python_version(),
        "workloads": {
            name: {
                "runs": each.runs,
                "failures": each.failures,
                "targets": [asdict(target) for target in each.targets],
            }
            for name, each in results.items()
        },
    }
    path.write_text(json.dumps(content, indent=1))
    return path
