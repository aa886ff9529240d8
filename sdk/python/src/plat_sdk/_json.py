"""Strict JSON, for documents that decide something."""

from __future__ import annotations

import json
from typing import Any, TypeGuard

MAX_JSON_DEPTH = 64
MAX_NUMBER_CHARS = 4096

JsonObject = dict[str, Any]


class _InvalidJson(ValueError):
    pass


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Return whether a value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether a value is a JSON array."""
    return isinstance(value, list)


def read_json(document: bytes, max_depth: int = MAX_JSON_DEPTH) -> Any:
    """
    Return the only value of a document in valid UTF-8, without byte order mark, duplicate members, infinite numbers
    and deep nesting. Raise ValueError for anything else; the message never quotes the document.
    """
    try:
        value = json.loads(
            document.decode("utf-8"),
            object_pairs_hook=_members,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_fraction,
        )
    except (ValueError, RecursionError):
        raise _InvalidJson("not strict JSON") from None
    if _is_deeper(value, max_depth):
        raise _InvalidJson("nested too deeply")
    return value


def read_object(document: bytes | None, max_depth: int = MAX_JSON_DEPTH) -> JsonObject | None:
    """Return a document that is an object, and None for anything else."""
    try:
        value = None if document is None else read_json(document, max_depth)
    except ValueError:
        return None
    return value if is_object(value) else None


def whole_number(value: object) -> int | None:
    """Return an integer that every JSON reader represents exactly, and None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value) if abs(value) <= 2**53 - 1 else None


def is_text(value: object) -> TypeGuard[str]:
    """Return whether a value is text, not empty and without lone surrogates."""
    return isinstance(value, str) and value != "" and _is_well_formed(value)


def _is_well_formed(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _members(pairs: list[tuple[str, Any]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _InvalidJson("duplicate member")
    return members


def _no_constant(_: str) -> Any:
    raise _InvalidJson("not a number of JSON")


def _integer(digits: str) -> int | float:
    _check_length(digits)
    # A conversion of thousands of digits is slow, and no longer exact in other languages.
    return int(digits) if len(digits) <= 17 else float(digits)


def _fraction(digits: str) -> float:
    _check_length(digits)
    return float(digits)


def _check_length(digits: str) -> None:
    if len(digits) > MAX_NUMBER_CHARS:
        raise _InvalidJson("number too long")


def _is_deeper(value: object, limit: int) -> bool:
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        one, depth = waiting.pop()
        children = one.values() if is_object(one) else one if is_list(one) else None
        if children is None:
            continue
        if depth > limit:
            return True
        waiting.extend((child, depth + 1) for child in children)
    return False
