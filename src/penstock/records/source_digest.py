"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "b317795ba5e10cf5"
