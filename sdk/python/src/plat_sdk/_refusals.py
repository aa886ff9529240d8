"""Reads refusals: in responses of every protocol, in results of tools, and in errors of clients."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ._json import JsonObject, is_list, is_object, read_object
from ._retry_after import retry_after_in
from .denied import DenialCode, DenialFacts, DeniedError, denial_of, is_denial_code

MAX_REFUSAL_BYTES = 1024 * 1024
"""A longer body is a result."""

DENIAL_MEMBER = "plat.dev/denial"
"""Member of a tool result's ``_meta`` with the refusal."""

_MAX_LINKS = 64
"""Errors that are followed: causes, contexts and members of groups."""

_SCOPE = re.compile(r'[\s,]scope="([^"]*)"')
_MILLISECONDS = re.compile(r"[0-9]{1,12}")
_JSON_TYPE = re.compile(r"application/json\b", re.IGNORECASE)

_NO_HEADERS: Mapping[str, str] = {}


def is_json(headers: Mapping[str, str]) -> bool:
    """Return whether a response declares JSON."""
    return _JSON_TYPE.match(headers.get("content-type", "")) is not None


def denied_by(value: object) -> DeniedError | None:
    """
    Return the refusal in the result of a tool call or in an error of a client, and None if there is none.

    Clients: ``mcp``, ``openai``, ``anthropic``, ``httpx``, aiohttp, and groups of their errors.
    """
    facts = _of_result(value)
    if facts is not None:
        return denial_of(facts)
    for error in _linked(value):
        if isinstance(error, DeniedError):
            return error
        facts = _of_error(error)
        if facts is not None:
            denied = denial_of(facts)
            denied.__cause__ = value if isinstance(value, BaseException) else None
            return denied
    return None


def facts_in(
    body: object, status: int = 0, headers: Mapping[str, str] = _NO_HEADERS, now: float | None = None
) -> DenialFacts | None:
    """Read the body of a refusal; None if it is not one of the gateway's."""
    if not is_object(body):
        return None
    reader = _Reader(status, headers, time.time() if now is None else now)
    if "result" in body:
        return reader.result(body["result"])
    error = body.get("error")
    if is_denial_code(error):
        # Servers other than the gateway use such words too, but without the ID of a request.
        return reader.facts(error, body.get("message")) if isinstance(body.get("requestId"), str) else None
    if not is_object(error):
        return None
    if isinstance(error.get("code"), int):
        return reader.rpc(error)
    code = error.get("code")
    if not is_denial_code(code):
        return None
    return reader.facts(code, error.get("message"), {"approvalId": error.get("approval_id")})


def facts_of_response(status: int, headers: Mapping[str, str], body: bytes | None) -> DenialFacts | None:
    """Read the refusal in the JSON of a response, also on HTTP 200."""
    return facts_in(read_object(body), status, headers) if is_json(headers) else None


def denial_in(response: Any) -> DeniedError | None:
    """Return the refusal in a response of ``httpx`` whose body was read; None if it has none."""
    if response.status_code < 400 or len(response.content) > MAX_REFUSAL_BYTES:
        return None
    facts = facts_of_response(response.status_code, response.headers, response.content)
    return None if facts is None else denial_of(facts)


class _Reader:
    """Builds facts with the status and the headers of one response."""

    def __init__(self, status: int = 0, headers: Mapping[str, str] = _NO_HEADERS, now: float = 0) -> None:
        self._status = status
        self._headers = headers
        self._now = now

    def result(self, result: object) -> DenialFacts | None:
        """A result of ``tools/call`` by which the gateway refused the call."""
        if not is_object(result) or result.get("isError") is not True:
            return None
        meta = result.get("_meta")
        denial = meta.get(DENIAL_MEMBER) if is_object(meta) else None
        if not is_object(denial):
            return None
        return self.rpc({"code": denial.get("code"), "message": denial.get("reason"), "data": denial})

    def rpc(self, error: JsonObject) -> DenialFacts | None:
        """A JSON-RPC error: the gateway's code is in ``data.error``, or in the metadata of A2A's ErrorInfo."""
        data = _denial_data(error.get("data"))
        word = None if data is None else data.get("error")
        if data is None or not is_denial_code(word):
            return None
        code = error.get("code")
        # Codes of JSON-RPC and the protocols are negative; all others are the HTTP status.
        status = code if isinstance(code, int) and code > 0 else self._status
        return self.facts(word, error.get("message"), data, status)

    def facts(
        self, code: DenialCode, message: object, data: JsonObject | None = None, status: int | None = None
    ) -> DenialFacts:
        given = data or {}
        milliseconds = _milliseconds(given.get("retryAfterMs"))
        challenge = _SCOPE.search(self._headers.get("www-authenticate", ""))
        scopes = given.get("scopes")
        words = challenge[1].split(" ") if challenge is not None else scopes if is_list(scopes) else []
        return DenialFacts(
            code=code,
            message=_text(message) or code,
            status=self._status if status is None else status,
            policy=_text(given.get("policy")),
            rule=_text(given.get("rule")),
            decision_id=_text(given.get("decisionId")) or self._headers.get("x-plat-decision-id"),
            retry_after=retry_after_in(self._headers, self._now) if milliseconds is None else milliseconds / 1000,
            approval_id=_text(given.get("approvalId")),
            scopes=tuple(word for word in words if isinstance(word, str) and word != ""),
            connect_url=_text(given.get("connectURL")),
            provider=_text(given.get("provider")),
        )


def _denial_data(data: object) -> JsonObject | None:
    if is_object(data):
        return data
    if not is_list(data):
        return None
    for one in data:
        metadata = one.get("metadata") if is_object(one) else None
        if is_object(metadata) and "error" in metadata:
            return metadata
    return None


def _milliseconds(value: object) -> float | None:
    """ErrorInfo of A2A has only texts."""
    if isinstance(value, str) and _MILLISECONDS.fullmatch(value):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e12 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value != "" else None


def _of_result(value: object) -> DenialFacts | None:
    """A tool result as plain JSON, or as the model of ``mcp``."""
    reader = _Reader()
    if is_object(value):
        return reader.result(value)
    # Version 1 of ``mcp`` has the name of the wire.
    is_error = getattr(value, "is_error" if hasattr(value, "is_error") else "isError", None)
    return reader.result({"isError": is_error, "_meta": getattr(value, "meta", None)})


def _linked(value: object) -> Iterator[object]:
    """The error, its causes, and the members of groups, nearest first and each once."""
    waiting: list[object] = [value]
    seen: set[int] = set()
    while waiting and len(seen) < _MAX_LINKS:
        one = waiting.pop(0)
        if id(one) in seen or not (isinstance(one, BaseException) or is_object(one)):
            continue
        seen.add(id(one))
        yield one
        members: Any = getattr(one, "exceptions", ())
        if isinstance(members, (list, tuple)):
            waiting.extend(members)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(one, BaseException):
            waiting.extend(link for link in (one.__cause__, one.__context__) if link is not None)


def _of_error(error: object) -> DenialFacts | None:
    if is_object(error):
        return _Reader().rpc(error) or facts_in(error)
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", getattr(response, "status_code", 0))
    headers: Any = getattr(response, "headers", None)
    facts = None
    # ``openai`` and ``anthropic`` have the error object or the whole body, ``httpx`` the response.
    for body in (getattr(error, "body", None), _read_body(response)):
        facts = facts or _of_body(body, status if isinstance(status, int) else 0, headers)
    inner = getattr(error, "error", error)
    members = {name: getattr(inner, name, None) for name in ("code", "message", "data")}
    return facts or _Reader().rpc(members)


def _of_body(body: object, status: int, headers: Any) -> DenialFacts | None:
    given = headers if isinstance(headers, Mapping) else _NO_HEADERS  # pyright: ignore[reportUnknownVariableType]
    return facts_in(body, status, given) or facts_in({"error": body}, status, given)  # pyright: ignore[reportUnknownArgumentType]


def _read_body(response: object) -> object:
    """The JSON of a response that was read; None otherwise."""
    content = getattr(response, "_content", None)
    return read_object(content) if isinstance(content, bytes) and len(content) <= MAX_REFUSAL_BYTES else None
