"""`format("kafka-share")`: what a share group acquires, as a stream (KIP-932).

    source -> driver -> batches      Spark's calls, on the driver: what a batch consists of, and its end
                 |-> group -> group_member -> sessions, renewals, heartbeats
                 |-> ledger, offset, verdicts, decisions
                 |-> last_batch -> reclaiming, state_files     after a restart
           -> splitting -> piece_reader         what a batch consists of, read by executors

For `foreachBatch`: `acknowledge_by_column` accepts, releases and rejects record by record; `process_records`
runs a function on each record and puts aside those that break it. `stop_in_order` stops a query once its
batch is done. How it all works: docs/kafka-share.md.
"""

from barnabas.pipeline.share_source.acknowledging import acknowledge_by_column
from barnabas.pipeline.share_source.processing import process_records
from barnabas.pipeline.share_source.stopping import stop_in_order

__all__ = ["acknowledge_by_column", "process_records", "stop_in_order"]
