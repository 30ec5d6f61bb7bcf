"""Replay: records of a table or of topics, back into a topic; filtered, throttled, and to be gone on with.

    from barnabas.pipeline.replay import ReplayOptions, replay

    replay(spark, ReplayOptions(
        table=TableOptions(location="/lake/orders-unparsed"),
        sink_options={"servers": "127.0.0.1:9092", "topic": "orders"},
        where="reason like '%price%'",
        records_per_second=1000,
        progress="/lake/replays/prices",
    ))

`replaying` plans and writes, `origins` says what there is, `records` what is written of it, `writing`
writes it once. Importing this package loads neither PySpark nor PyArrow.
"""

from barnabas.pipeline.replay.options import ReplayOptions
from barnabas.pipeline.replay.replaying import Replayed, ReplayStep, replay

__all__ = ["ReplayOptions", "ReplayStep", "Replayed", "replay"]
