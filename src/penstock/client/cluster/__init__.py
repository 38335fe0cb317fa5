"""The cluster as a client sees it: connections, versions, metadata, retries."""
