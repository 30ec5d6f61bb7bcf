"""Configuration: the table of settings, the sources of their values, and the values in effect.

- `setting.py` is one setting; `server_settings.py`, `quota_settings.py`, `metadata_settings.py`,
  `log_settings.py`, `cleaner_settings.py`, `share_settings.py`, `consumer_settings.py`,
  `classic_group_settings.py`, `offset_settings.py`, `transaction_settings.py`, `share_state_settings.py` and
  `topic_settings.py` are the table (`bounded_setting.py` has the four settings of a value that each group can
  set within bounds), `tables.py` is the table by name, `kafka_names.py` has the other names that a
  `server.properties` may hold.
- `sources.py` and `loading.py` read the values, `broker_config.py` is the result.
- `coordinator_settings.py` selects the settings of the group coordinators.
- `dynamic_settings.py` applies settings that change while the broker runs.
- `effective.py` adds the changes made while the broker runs; `group_config.py` is the result for one group;
  `rules.py` decides whether a change is allowed.
"""
