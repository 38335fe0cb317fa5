"""Parts of copying a topic: the offset map, moving group offsets, and comparing source and target."""
