"""`/api/v1`: topics, groups, and the records of share groups; each list comes in pages of bounded size."""
