"""The PySpark pipeline. Nothing of it is there yet."""
