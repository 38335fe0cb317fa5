"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "d3a14cf4f09550cc"
