"""From a frame to a handler: dispatch, waiting, quotas, release profiles and limits."""
