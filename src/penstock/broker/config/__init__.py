"""Settings of brokers, topics and groups: keys, values, alterations, and files of settings."""
