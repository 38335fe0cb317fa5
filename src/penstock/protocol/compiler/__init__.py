"""From a definition at one version to the functions that encode and decode it."""
