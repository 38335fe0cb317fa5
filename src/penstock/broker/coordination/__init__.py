"""Parts that all coordinators share: state topics, their loaded partitions, timers, storing of changes."""
