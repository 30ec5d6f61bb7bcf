"""Replay: writes records of a table or of topics back to a topic; filtered, throttled and resumable.

    from barnabas.pipeline.replay import ReplayOptions, replay
    from barnabas.pipeline.tables import TableOptions

    replay(spark, ReplayOptions(
        table=TableOptions(location="/lake/orders-unparsed"),
        sink_options={"servers": "127.0.0.1:9092", "topic": "orders"},
        where="reason like '%price%'",
        records_per_second=1000,
        progress="/lake/replays/prices",
    ))

`replaying` plans and writes, `origins` reads the rows, `records` makes records of them, `writing` writes each
record once. Importing this package does not load PySpark or PyArrow.
"""

from barnabas.pipeline.replay.options import ReplayOptions
from barnabas.pipeline.replay.replaying import Replayed, ReplayStep, replay

__all__ = ["ReplayOptions", "ReplayStep", "Replayed", "replay"]
