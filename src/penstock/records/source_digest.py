"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "bb1a75a66810885a"
