"""`format("kafka-share")`: the records that a share group acquires, as a stream (KIP-932).

    source -> driver -> batches      Spark's calls, on the driver: the ranges of a batch, and its end
                 |-> group -> group_member -> sessions, renewals, heartbeats
                 |-> ledger, offset, verdicts, decisions
                 |-> last_batch -> reclaiming, state_files     after a restart
           -> splitting -> piece_reader         the records of a batch, read by executors

For `foreachBatch`: `acknowledge_by_column` accepts, releases and rejects single records; `process_records`
runs a function on each record and handles the records for which it fails. `stop_in_order` stops a query after
its batch. docs/kafka-share.md explains the source.
"""

from barnabas.pipeline.share_source.acknowledging import acknowledge_by_column
from barnabas.pipeline.share_source.processing import process_records
from barnabas.pipeline.share_source.stopping import stop_in_order

__all__ = ["acknowledge_by_column", "process_records", "stop_in_order"]
