"""`format("kafka-log")`: reads the data directories of brokers, without a broker.

directories       finds the partitions of data directories, and the segments of each
segment_file      opens and reads a segment's files, and walks its batches by their headers
batch_places      checks that a batch lies at the position in an index
slicing           cuts segments into slices that begin at a batch, without unwanted ones
transactions      finds aborted and open transactions
planning          makes tasks from these, on the driver
slice_reader      decodes a slice to Arrow, in a task
control_batches   the control batches of a slice, for the history of share groups
source            the format itself; the only module that needs Spark
"""
