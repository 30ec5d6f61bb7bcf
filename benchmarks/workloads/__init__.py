"""The workloads, in the order of the report."""

from benchmarks.measurement import Workload
from benchmarks.workloads.cleaning_latency import CleaningLatency
from benchmarks.workloads.consume_bulk import ConsumeBulk
from benchmarks.workloads.delivery_latency import DeliveryLatency
from benchmarks.workloads.durability import Durability
from benchmarks.workloads.first_record import FirstRecord
from benchmarks.workloads.group_load import GroupLoad
from benchmarks.workloads.jobs import Jobs
from benchmarks.workloads.produce_bulk import ProduceBulk
from benchmarks.workloads.produce_latency import ProduceLatency
from benchmarks.workloads.recovery import Recovery
from benchmarks.workloads.recovery_sizes import RecoverySizes
from benchmarks.workloads.share_assignor import ShareAssignor
from benchmarks.workloads.share_asyncio import ShareAsyncio
from benchmarks.workloads.share_confluent import ShareConfluent
from benchmarks.workloads.share_java import ShareJava
from benchmarks.workloads.share_order import ShareOrder
from benchmarks.workloads.share_small_batches import ShareSmallBatches
from benchmarks.workloads.share_sparse import ShareSparse
from benchmarks.workloads.share_threads import ShareThreads
from benchmarks.workloads.start import Start
from benchmarks.workloads.start_partitions import StartPartitions

_ALL: tuple[type[Workload], ...] = (
    ShareJava,
    ShareConfluent,
    ShareSmallBatches,
    ShareSparse,
    ShareThreads,
    ShareOrder,
    ShareAssignor,
    ShareAsyncio,
    ProduceBulk,
    ConsumeBulk,
    ProduceLatency,
    DeliveryLatency,
    Jobs,
    CleaningLatency,
    GroupLoad,
    FirstRecord,
    Start,
    StartPartitions,
    Recovery,
    RecoverySizes,
    Durability,
)

WORKLOADS = {each.name: each for each in _ALL}
"""Workloads by name."""
