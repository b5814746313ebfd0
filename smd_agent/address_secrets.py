"""Secrets in addresses, such as the key of a store: they are left out of all lines that the agent prints.

Standard library only, and below everything else.
"""

from __future__ import annotations


def without_secrets(text: str) -> str:
    """Return a text with ``***`` in place of what an address has before its host, as in ``s3://KEY:SECRET@bucket``."""
    if "://" not in text or "@" not in text:
        return text
    import re

    return re.sub(r"(://)[^/@\s]+@", r"\1***@", text)
