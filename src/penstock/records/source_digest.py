"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "e0a078a882ed44a4"
