"""Parts of a topic's copy: the map of offsets, moving group offsets by it, and comparing both sides."""
