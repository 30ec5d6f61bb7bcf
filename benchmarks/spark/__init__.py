"""The pipeline on Spark beside the ways that there are without it; run by `python -m benchmarks.spark`."""
