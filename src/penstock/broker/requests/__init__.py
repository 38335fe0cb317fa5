"""Processing of requests before and after handlers: dispatch, purgatory, quotas, release profiles, limits."""
