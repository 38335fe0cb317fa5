"""What every kind of server here shares: taking in connections, a loop on a thread, what others can reach."""
