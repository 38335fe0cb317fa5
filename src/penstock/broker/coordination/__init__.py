"""What every coordinator is made of: a topic of state, its partitions by epoch, timers, drafts, storing."""
