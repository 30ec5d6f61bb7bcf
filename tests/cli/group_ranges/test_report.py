"""The report of `barnabas ranges`: aligned tables, and lines of JSON with everything."""

from __future__ import annotations

import io
import json

from barnabas.cli.group_ranges.report import GroupReport, PartitionReport, Sharer, print_report
from barnabas.cli.printing import Printer
from barnabas.client.admin.group_positions import Bounds
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, even_ranges

LOW, HIGH = even_ranges(2)
REPORT = GroupReport(
    "billing",
    "Stable",
    [
        PartitionReport(
            "orders",
            0,
            43,
            Bounds(0, 60),
            [OffsetRange(45, 47), OffsetRange(50, 50)],
            [Sharer("m-1", "app", "/10.0.0.7", LOW), Sharer("m-2", "another-app", "/10.0.0.8", HIGH)],
        ),
        PartitionReport("orders", 1, None, Bounds(0, 7), [], [Sharer("m-3", "app", "/10.0.0.9", ALL_HASHES)]),
        PartitionReport("returns", 10, 5, Bounds(0, 4), [], []),
        PartitionReport("returns", 11, 5, Bounds(90, 100), [], []),
    ],
)


def printed(report: GroupReport = REPORT, *, as_json: bool = False, with_ranges: bool = False) -> list[str]:
    out = io.StringIO()
    print_report(report, Printer(as_json=as_json, out=out), with_ranges=with_ranges)
    return out.getvalue().splitlines()


def test_tables_have_the_offsets_and_the_sharers() -> None:
    assert printed() == [
        "billing  (Stable)",
        "  TOPIC    PARTITION  STABLE  COMMITTED  END  LAG  RANGES  MEMBERS",
        "  orders   0          42      43         60   17   2       2",
        "  orders   1          -       -          7    -    0       1",
        "  returns  10         4       5          4    0    0       0",
        "  returns  11         4       5          100  10   0       0",
        "",
        "  TOPIC   PARTITION  FIRST HASH  LAST HASH   MEMBER  CLIENT       HOST",
        "  orders  0          0           1073741823  m-1     app          /10.0.0.7",
        "  orders  0          1073741824  2147483647  m-2     another-app  /10.0.0.8",
        "  orders  1          0           2147483647  m-3     app          /10.0.0.9",
    ]


def test_the_ranges_are_a_further_table_on_request() -> None:
    assert printed(with_ranges=True)[11:] == [
        "",
        "  TOPIC   PARTITION  FIRST OFFSET  LAST OFFSET",
        "  orders  0          45            47",
        "  orders  0          50            50",
    ]


def test_empty_tables_are_left_out() -> None:
    report = REPORT._replace(partitions=REPORT.partitions[2:3])
    assert len(printed(report, with_ranges=True)) == 3


def test_json_has_a_line_for_the_group_and_one_for_each_partition_with_everything() -> None:
    group, first, second, third, _ = map(json.loads, printed(as_json=True))
    assert group == {"type": "group", "group": "billing", "state": "Stable"}
    assert first == {
        "type": "partition",
        "group": "billing",
        "topic": "orders",
        "partition": 0,
        "stable_offset": 42,
        "committed_offset": 43,
        "end_offset": 60,
        "lag": 17,
        "range_count": 2,
        "sharer_count": 2,
        "ranges": [[45, 47], [50, 50]],
        "sharers": [
            {
                "topic": "orders",
                "partition": 0,
                "first_hash": 0,
                "last_hash": 1073741823,
                "member_id": "m-1",
                "client_id": "app",
                "host": "/10.0.0.7",
            },
            {
                "topic": "orders",
                "partition": 0,
                "first_hash": 1073741824,
                "last_hash": 2147483647,
                "member_id": "m-2",
                "client_id": "another-app",
                "host": "/10.0.0.8",
            },
        ],
    }
    assert (second["stable_offset"], second["committed_offset"], second["lag"]) == (None, None, None)
    assert (third["ranges"], third["sharers"]) == ([], [])
