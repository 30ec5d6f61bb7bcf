"""The pipeline on Spark beside alternatives without it; run by `python -m benchmarks.spark`."""
