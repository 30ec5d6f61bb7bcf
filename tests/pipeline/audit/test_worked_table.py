"""The worked table of KIP-932's draft "Recovery and log cleaning", audited: offsets 100 to 120 of group G1,
control records 130 to 137.

Where the table has a checkpoint that begins at 110 though 100 to 109 are acknowledged after it, the one here
begins at 100.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.audit.tables import CHECKPOINT, OPEN
from barnabas.protocol.delivery_state import Cause, StateRange
from tests.pipeline.audit.auditing import Audited, offsets_of
from tests.pipeline.audit.written_logs import AVAILABLE, WrittenGroup, WrittenLog, accepted, released


@pytest.fixture
def group(tmp_path: Path) -> WrittenGroup:
    """Up to control record 136."""
    log = WrittenLog(tmp_path, "orders")
    log.produce(130)
    written = WrittenGroup(log, "G1", start_offset=100)
    written.delta(accepted(100, 109))
    written.delta(released(110, 110))
    written.delta(StateRange(111, 118, AVAILABLE, 0), accepted(119, 119))
    written.delta(released(111, 112, cause=Cause.LOCK_EXPIRED))
    written.delta(accepted(113, 118))
    written.delta(accepted(110, 110, 2))
    return written


@pytest.mark.parametrize("ending", ["delta", "checkpoint"])
def test_the_worked_table_has_its_deliveries_and_no_violations(
    group: WrittenGroup, tmp_path: Path, ending: str
) -> None:
    last = accepted(111, 112, 2)
    if ending == "delta":
        assert group.delta(last) == 137
    else:
        assert group.state(group.as_checkpoint()._replace(start_offset=120, end_offset=120, states=())) == 137
    audited = Audited(tmp_path)
    assert audited.violations == []
    told = [
        (row["controlOffset"], row["firstOffset"], row["lastOffset"], row["deliveryCount"], row["cause"])
        for row in audited.deliveries
    ]
    assert told[:7] == [
        (131, 100, 109, 1, "accept"),
        (132, 110, 110, 1, "release"),
        (133, 119, 119, 1, "accept"),
        (134, 111, 112, 1, "lock_expired"),
        (135, 113, 118, 1, "accept"),
        (136, 110, 110, 2, "accept"),
        (137, 111, 112, 2, "accept") if ending == "delta" else (137, 111, 112, None, None),
    ]
    assert len(told) == 7
    acknowledged = offsets_of(audited.deliveries, outcome="acknowledged")
    unknown = offsets_of(audited.deliveries, outcome="unknown")
    assert sorted(acknowledged + unknown) == list(range(100, 120))
    assert unknown == ([] if ending == "delta" else [111, 112])
    assert (audited.history["startOffset"], audited.history["endOffset"]) == (120, 120)
    assert audited.table(OPEN) == []
    assert len(audited.table(CHECKPOINT)) == (1 if ending == "delta" else 2)
