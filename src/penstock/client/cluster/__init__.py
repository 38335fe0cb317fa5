"""The cluster as a client sees it: connections, API versions, metadata, retries."""
