"""The way into a log: checks, order, and one write for all who wait."""
