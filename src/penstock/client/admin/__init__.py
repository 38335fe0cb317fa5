"""The asyncio admin client: topics, settings, quotas, groups."""
