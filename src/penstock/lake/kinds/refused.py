"""Turn error texts of stores and catalogs into one line with advice.

Their libraries return several lines, terminal colours, and XML documents.
"""

from __future__ import annotations

import re

from penstock.lake.credentials import without_secrets

TEXT_CHARS_MAX = 600
"""The maximum length of an error text in characters; the remainder is cut off."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_BRANCH = re.compile(r"\s*\n?\s*\u21b3\s*")
_SOURCE = re.compile(r"[\s.:]*Debug source:.*", re.DOTALL)
_DOCUMENT = re.compile(r"<\?xml.*|<Error>.*", re.DOTALL)
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_REQUEST = re.compile(
    r"Error performing ([A-Z]+) (\S+) in [\d.]+\w+(?:, after (\d+) retries[^-]*?)? ?(?:-|:) "
)
_NOISE = re.compile(
    r"Kernel error -> |Generic \w+ error: |Error performing \w+ request: |"
    r"\(Background on this error at: \S*\)|Server returned non-2xx status code: |"
    r", max_retries: \d+, retry_timeout: \w+"
)

_ADVICE = (
    (
        r"InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|ACCESS_DENIED|ExpiredToken|InvalidToken|"
        r"INVALID_ACCESS_KEY_ID|EXPIRED_TOKEN|401 Unauthorized|403 Forbidden|UnauthorizedError|"
        r"ForbiddenError|NoCredentials|CredentialsNotLoaded|lacked the necessary privileges|"
        r"AuthorizationExpiredError",
        "Check the credentials in --store, --store-file or the environment, and what they may do",
    ),
    (r"NoSuchBucket|NO_SUCH_BUCKET", "Create the bucket, or check its name"),
    (
        r"169\.254\.169\.254",
        "No credentials are given, and this machine has none by itself: give them by --store, "
        "--store-file or the environment",
    ),
    (
        r"[Cc]onnection refused|NETWORK_CONNECTION|error sending request|NewConnectionError|"
        r"NameResolutionError|dns error|Could not connect|Could not resolve",
        "Does the store or catalog run there, and is its address right?",
    ),
    (r"URI missing", "Give --store uri=... and its other options, or a section of ~/.pyiceberg.yaml"),
    (r"No default path is set", "Say where tables lie by --store warehouse=s3://bucket/path"),
    (r"[Nn]o space left|database or disk is full", "Make room on the disk"),
    (
        r"SlowDown|503 Service Unavailable|timed out|TimeoutError|TIMEOUT|operation timed out",
        "The store is slow or has too much to do: start again later, the table says where to go on",
    ),
)


def answer_of(error: BaseException) -> str:
    """Return an error of a store's library as one line without secrets, with advice on what to do."""
    text = str(error) or type(error).__name__
    codes = [*_CODE.findall(text)]
    messages = _MESSAGE.findall(text)
    found = _BRANCH.sub(": ", _COLOURS.sub("", text))
    found = _SOURCE.sub("", found)
    found = _DOCUMENT.sub("", found) if codes or "<?xml" in found else found
    found = _NOISE.sub("", _NOISE.sub("", " ".join(found.split())))
    found = _REQUEST.sub(_request, found).strip(" :-")
    if codes:
        said = f"{messages[0].rstrip('.')} ({codes[0]})" if messages and messages[0] else codes[0]
        found = f"{found}: {said}" if found else said
    if len(found) > TEXT_CHARS_MAX:
        found = found[:TEXT_CHARS_MAX] + "…"
    for pattern, advice in _ADVICE:
        if re.search(pattern, text):
            found = f"{found.rstrip('.')}. {advice}"
            break
    return without_secrets(found)


def _request(match: re.Match[str]) -> str:
    method, url, retries = match.groups()
    again = "" if retries is None else f", tried {int(retries) + 1} times"
    return f"{method} {url}{again}: "
