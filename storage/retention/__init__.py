"""Retention: which segments may go, and their removal."""
