"""The brokers of a cluster and its topics: bootstrap, metadata, connections to leaders and coordinators."""
