"""Many clients in one light process: the driver of the `group_load` workload.

`python -m benchmarks.load.driver` imitates Kafka's Java clients of version 4.3: their requests, versions,
connections and intervals; see there. Frequent requests are encoded by hand, so that the driver uses little
CPU. It recovers from no error: an error from which a client would recover makes the run fail.
"""
