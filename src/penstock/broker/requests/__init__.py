"""The path of a request from frame to handler: dispatch, purgatory, quotas, release profiles and limits."""
