"""The data source `penstock`: options, planning, readers and writers."""
