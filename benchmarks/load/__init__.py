"""Many clients in one light process: the driver of the `group_load` workload.

`python -m benchmarks.load.driver` speaks the protocol as Kafka's Java clients of version 4.3 do: which
requests, in which versions, on which connections and how often; see there. What is asked all the time is
encoded by hand, so that the driver takes little of the machine. Nothing is recovered from: an error that a
client would get over is a failed run here.
"""
