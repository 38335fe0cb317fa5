"""What a filter says of the place of records: from the filters of Arrow and of Spark."""
