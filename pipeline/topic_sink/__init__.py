"""`format("kafka-topic")`, writing: batch and streaming, each record once if the brokers can do it.

    writers                      the classes that Spark calls: a task's part, the driver's part
      |-> task_writing           one task: rows -> encoding -> the client's producer
      |     `-> client.produce.partitioner  the partition of a row, the same as with Java's producer
      `-> committing             the driver's part of a micro-batch, in transactions
            `-> decision         the note that is written before any transaction is ended
    deduplication                each record once without transactions: a header, which readers compare

How a batch is written once: docs/decisions/0013-a-sink-that-writes-a-batch-once.md. How to use it:
docs/kafka-topic.md.
"""
