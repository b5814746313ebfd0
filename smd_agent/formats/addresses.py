"""Addresses of runs that lie in a store, such as ``s3://bucket/runs/7``, told from the paths of folders."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_OF_THIS_MACHINE = ("file", "local")


def is_address(text: str) -> bool:
    """True if this is the address of a store, and not the path of a folder of this machine."""
    found = _ADDRESS.fullmatch(text.strip())
    return found is not None and found[1].lower() not in _OF_THIS_MACHINE


def plain(text: str) -> str:
    """An address without a slash at its end, the path that ``file://`` stands before, or any other path as it is."""
    text = text.strip()
    found = _ADDRESS.fullmatch(text)
    if found is None:
        return text
    if found[1].lower() in _OF_THIS_MACHINE:
        return found[2]
    return f"{found[1].lower()}://{found[2].rstrip('/')}"


def protocol_of(address: str) -> str:
    """The part before ``://``."""
    return address.partition("://")[0].lower()


def last_part(address: str) -> str:
    """The last name of an address, as a run's folder is called by its last name."""
    return address.rstrip("/").rpartition("/")[2] or "run"
