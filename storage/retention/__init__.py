"""Retention: the choice of segments that may be removed, and their removal."""
