"""Advice for errors of the operating system: the reason, and what the user can do."""

from __future__ import annotations

import errno

_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space and try again",
    errno.EDQUOT: "the disk quota is used up; free some space and try again",
    errno.EFBIG: "the file may not grow any further (file size limit of the process or the file system)",
    errno.EACCES: "permission denied; run as the owner of the directory, or change its mode",
    errno.EPERM: "permission denied; run as the owner of the directory, or change its mode",
    errno.EROFS: "the file system is read-only; choose another directory",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine",
    errno.EIO: "the device reports an input/output error",
    errno.ENOENT: "there is no such file or directory",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EISDIR: "it is a directory, not a file",
    errno.EADDRINUSE: "the port is in use; choose another with --port, or 0 for any free one",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose another with --host",
}


def reason_of(error: OSError) -> str:
    """Return the reason of an error with advice, or the system's text for it, without a full stop."""
    return advice_for(error) or error.strerror or str(error)


def advice_for(error: OSError) -> str | None:
    """Return the reason of an error and what to do, or None if there is no advice for it."""
    return _ADVICE.get(error.errno or 0)
