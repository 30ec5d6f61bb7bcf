"""`format("kafka-log")`: reads the data directories of brokers, without a broker.

directories       finds the partitions of data directories, and the segments of each
segment_file      opens and reads a segment's files, and walks its batches by their headers
batch_places      tells whether a batch lies where an index says
slicing           cuts segments into slices that begin at a batch, leaving out what isn't wanted
transactions      which transactions were aborted, which are open
filters           what a query's filters leave to be read
planning          makes tasks of all that, on the driver
slice_reader      decodes a slice to Arrow, in a task
control_batches   the control batches of a slice, for who reads the history of share groups
source            the format itself, which is all that needs Spark
"""
