"""Parts of every coordinator: a topic of state, its partitions by epoch, timers, drafts, storing."""
