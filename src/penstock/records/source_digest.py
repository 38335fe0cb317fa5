"""The digest of the C sources that belong to these kernels. Generated: do not edit."""

DIGEST = "f97cdf8aa5b1dafb"
