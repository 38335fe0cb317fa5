"""From a frame to a handler: dispatch, purgatory, quotas, release profiles and limits."""
