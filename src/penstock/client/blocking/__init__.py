"""The blocking clients: the asyncio ones on one background loop."""
