"""A query in a process of its own, which kills itself and all its children at a given batch.

python -m tests.pipeline.share_source.query_process '{"servers": ..., "kill_before": 1, ...}'
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.pipeline.local_spark import local_session
from tests.pipeline.share_source.matrix import Sink, once, start


def main(config: dict[str, Any]) -> None:
    """Run the query to its end, or to the batch before or after whose sink it is to die."""
    directory = Path(config["directory"])
    spark = local_session(directory, memory="512m")
    sink = Sink(directory / "sink", may_shrink="stateDir" in config["options"])
    if "kill_before" in config:
        sink.before = once(config["kill_before"], kill_all)
    if "kill_after" in config:
        sink.after = once(config["kill_after"], kill_all)
    query = start(spark, config["options"], directory / "checkpoint", sink)
    query.awaitTermination()
    spark.stop()


def kill_all() -> None:
    """SIGKILL: this process, the JVM, the source's reader, every worker."""
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
