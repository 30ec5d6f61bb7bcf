"""Stops a query in order: the batch under way is finished, committed and acknowledged.

    query = stream.start()                        # the source has the option stateDir
    stop_in_order(query, state_dir="/var/lib/orders/state")

`query.stop()` alone interrupts the batch. Its records then go to other members of the group, and the batch is
repeated without those. Spark doesn't tell a source that its last batch is committed. So this function does,
with a file in `stateDir`: first it asks the query to acquire nothing more, then it notes the committed batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.pipeline.share_source.state_files import StateFiles

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

STOP_SECONDS: Final = 60.0
"""How long the batch under way may take before it is interrupted."""
LOOK_SECONDS: Final = 0.1


def stop_in_order(
    query: StreamingQuery,
    *,
    state_dir: str,
    seconds: float = STOP_SECONDS,
    is_hurried: Callable[[], bool] = lambda: False,
) -> bool:
    """Stops a query after its batch; returns whether that took no more than `seconds`.

    After `seconds`, or as soon as `is_hurried`, the batch is interrupted, as by `query.stop()`. Raises
    `PipelineError` if the directory can't be written to.
    """
    files = StateFiles(state_dir)
    until = time.monotonic() + seconds
    is_done = False
    # A trigger that begins after the wish to stop makes no batch.
    while not is_done and time.monotonic() < until and not is_hurried():
        files.ask_to_stop()  # again and again, because a starting query removes an earlier wish
        is_done = not query.isActive or not query.status["isTriggerActive"]
        if not is_done:
            time.sleep(LOOK_SECONDS)
    if query.isActive:
        files.note_committed(_committed(query))
        query.stop()
    return is_done


def _committed(query: StreamingQuery) -> dict[str, int]:
    """By member, the sequence of the last batch with progress from Spark, which comes after its commit."""
    committed: dict[str, int] = {}
    for progress in query.recentProgress:
        for source in progress["sources"]:
            offset = cast("dict[str, Any]", json.loads(source["endOffset"] or "{}"))
            if "member" in offset and "sequence" in offset:
                committed[offset["member"]] = offset["sequence"]
    return committed
