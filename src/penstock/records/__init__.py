"""Records: decode batches of bytes into rows or columns, and encode rows or columns as batches.

`compression`, `crc` and `batch` need only the standard library and the libraries cramjam and crc32c;
`kernels`, `columns`, `decode`, `encode` and `arrow` need numpy (and the compiled kernels to be fast).
Import from the modules: this package imports none of them.
"""
