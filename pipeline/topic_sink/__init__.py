"""`format("kafka-topic")`, writing: batch and streaming, each record once where that can be had.

    writers                      what Spark calls: a task's part, the driver's part
      |-> task_writing           one task: rows -> encoding -> the client's producer
      |     `-> partitioner      which partition a row goes to, as Java's producer decides
      `-> committing             the driver's part of a micro-batch, in transactions
            `-> decision         what is written down before any transaction is ended
    deduplication                the other way to each record once: a header, and readers that look at it

How a batch is written once: docs/decisions/0013-a-sink-that-writes-a-batch-once.md. How to use it:
docs/kafka-topic.md.
"""
