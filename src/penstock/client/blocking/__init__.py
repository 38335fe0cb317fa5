"""The blocking clients: each runs the asyncio client of its kind on one shared background loop."""
