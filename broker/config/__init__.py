"""Configuration: the table of settings, where their values are written, and what holds at this moment.

- `setting.py` is one setting; `server_settings.py`, `quota_settings.py`, `metadata_settings.py`,
  `log_settings.py`, `cleaner_settings.py`, `share_settings.py`, `consumer_settings.py`,
  `classic_group_settings.py`, `offset_settings.py`, `transaction_settings.py`, `share_state_settings.py` and
  `topic_settings.py` are the table (`group_pace.py` what share groups and consumer groups have alike),
  `tables.py` the same by name, `kafka_names.py` what else a `server.properties` may hold.
- `sources.py` and `loading.py` read them, `broker_config.py` is the result.
- `group_settings.py` is what the coordinators of groups are told of it.
- `dynamic_settings.py` brings what may change while the broker runs to those who go by it.
- `effective.py` adds what was changed while the broker ran; `group_config.py` is that for one group, ready to
  use; `rules.py` says whether a change is allowed.
"""
