"""Acknowledgements in transactions, in each command."""

from __future__ import annotations

from pathlib import Path

from barnabas.protocol.delivery_state import Cause, PendingAcknowledgement, RecordState, StateRange
from tests.cli.log_tool.test_dead_letters import written
from tests.cli.log_tool.written_logs import LogCommand, accepted

PENDING = PendingAcknowledgement(7, 3, 1, "member-1")
FIELDS = {
    "pending_type": "accept",
    "pending_producer_id": 7,
    "pending_producer_epoch": 3,
    "pending_member": "member-1",
}


def pending(base_offset: int, last_offset: int) -> StateRange:
    return StateRange(base_offset, last_offset, RecordState.AVAILABLE, 1, Cause.NONE, "member-1", PENDING)


async def test_dump_prints_the_transaction_of_an_acknowledgement(
    log_command: LogCommand, tmp_path: Path
) -> None:
    path = await written(tmp_path, (pending(0, 1),), (accepted(0, 1),))
    (waiting,), (ended,) = (row["states"] for row in log_command.rows("dump", path) if row["type"] == "delta")
    assert {name: waiting[name] for name in FIELDS} == FIELDS
    assert "pending_type" not in ended
    _, printed = log_command.run("dump", path)
    assert next(line.strip() for line in printed if line.strip().startswith("range")) == (
        "range  offsets 0-1  state available  delivery count 1  cause none  member member-1  "
        "pending type accept  pending producer id 7  pending producer epoch 3  pending member member-1"
    )


async def test_describe_lists_the_records_that_wait_for_transactions(
    log_command: LogCommand, tmp_path: Path
) -> None:
    path = await written(tmp_path, (pending(0, 1), accepted(2, 4)))
    (group,) = [row for row in log_command.rows("describe", path) if row["type"] == "group"]
    assert (group["spso"], group["lag"], group["delivery_complete_count"]) == (0, 4, 3)
    waiting, _ = group["in_flight"]
    assert waiting == {
        "base_offset": 0,
        "last_offset": 1,
        "state": "available",
        "delivery_count": 1,
        **FIELDS,
    }


async def test_verify_accepts_a_commit(log_command: LogCommand, tmp_path: Path) -> None:
    path = await written(tmp_path, (pending(0, 2),), (accepted(0, 2),))
    assert log_command.run("verify", path)[0] == 0
