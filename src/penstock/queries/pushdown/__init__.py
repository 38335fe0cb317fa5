"""What a filter of Arrow says of the place of records."""
