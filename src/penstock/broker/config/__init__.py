"""Settings of brokers, topics and groups: keys, values, changes by clients, and `server.properties`."""
