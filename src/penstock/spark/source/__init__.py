"""The data source `penstock`: its options, the planning of reads, readers and writers."""
