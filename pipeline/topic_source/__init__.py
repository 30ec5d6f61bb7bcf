"""`format("kafka-topic")`, reading: ordinary reads by offset or time, batch and streaming.

    source -> topic_options       the user's options
      |-> batch_reader            one scan, with a query's filters
      `-> stream_reader           micro-batches, from one `StreamOffset` to the next
            `-> positions, planning -> catalog (topics and offsets, asked on the driver)

Tasks read with `barnabas.pipeline.reading`. `topic_sink` writes. How to use it: docs/kafka-topic.md.
"""
