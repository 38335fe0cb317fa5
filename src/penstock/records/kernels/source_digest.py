"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "303128f3e0001a48"
