"""Requests to the identity broker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from ._flow import Clock, Fetch, FetchFailedError, Flow, Reply
from ._json import JsonObject, read_object
from ._retry_after import retry_after_in
from .errors import IdentityRefusedError, PlatError, TokenUnavailableError
from .proof import Prover

RESPONSE_SECONDS = 30
MAX_RESPONSE_BYTES = 64 * 1024
_RETRYABLE = frozenset((408, 425, 429, 500, 502, 503, 504))
_TOO_EARLY = 425

_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_JWT = "urn:ietf:params:oauth:token-type:jwt"
_TRANSACTION = "urn:ietf:params:oauth:token-type:txn_token"


def request(
    url: str,
    *,
    headers: Mapping[str, str],
    json_body: JsonObject | None = None,
    form: Mapping[str, str] | None = None,
    wait: float = 0,
) -> Flow[JsonObject]:
    """One POST. ``wait``: seconds of a long poll. Raise IdentityRefusedError, or TokenUnavailableError without response."""
    sent = dict(headers)
    content = b""
    if json_body is not None:
        sent["content-type"], content = "application/json", json.dumps(json_body).encode()
    elif form is not None:
        sent["content-type"], content = "application/x-www-form-urlencoded", urlencode(form).encode()
    try:
        reply: Reply = yield Fetch("POST", url, sent, content, RESPONSE_SECONDS + wait, MAX_RESPONSE_BYTES)
    except FetchFailedError as error:
        place = urlsplit(url)
        message = f"the identity broker at {place.scheme}://{place.netloc} does not respond ({error})"
        raise TokenUnavailableError(message, retryable=True) from None
    answer = read_object(reply.body)
    if 200 <= reply.status < 300 and answer is not None:
        return answer
    raise _refusal(reply, answer or {})


def refused_early(work: Flow[JsonObject]) -> Flow[JsonObject | None]:
    """Return None instead of a refusal 425: not adopted or not prepared yet. The broker has waited before it responded."""
    try:
        return (yield from work)
    except IdentityRefusedError as error:
        if error.status != _TOO_EARLY:
            raise
        return None


def _refusal(reply: Reply, answer: JsonObject) -> IdentityRefusedError:
    error, description = answer.get("error"), answer.get("error_description")
    return IdentityRefusedError(
        reply.status,
        error if isinstance(error, str) else f"HTTP {reply.status}",
        description if isinstance(description, str) else None,
        retry_after_in(reply.headers, Clock().now()),
    )


def as_unavailable(error: Exception) -> TokenUnavailableError:
    """Return the same error as an error of a source; its status determines whether a retry may help."""
    if isinstance(error, TokenUnavailableError):
        return error
    if isinstance(error, IdentityRefusedError):
        return TokenUnavailableError(
            str(error), retryable=error.status in _RETRYABLE, retry_after=error.retry_after
        )
    if isinstance(error, PlatError):
        return TokenUnavailableError(str(error))
    # Its message could quote a token.
    return TokenUnavailableError("the source of tokens failed", retryable=True)


def text_in(answer: JsonObject, name: str) -> str:
    """Return a required text member."""
    value: Any = answer.get(name)
    if not isinstance(value, str) or value == "":
        raise TokenUnavailableError(f"the response of the identity broker has no {name}")
    return value


@dataclass(frozen=True)
class Exchanged:
    """
    Result of an exchange. ``token``: a session token for the audience, or the cloud credential: for ``aws-sts`` the JSON of
    a ``credential_process``. ``expires_at``: seconds since the epoch.
    """

    token: str = field(repr=False)
    scopes: tuple[str, ...]
    expires_at: float


class Exchanger:
    """The broker's bind and exchange endpoints (RFC 9449, RFC 8693) for one session."""

    def __init__(self, identity_url: str, clock: Clock) -> None:
        self._identity_url = identity_url
        self._clock = clock

    def bind(self, token: str, prover: Prover) -> Flow[str]:
        """Return the same token, bound to the prover's key. The first bind of a token wins."""
        url = f"{self._identity_url}/v1/token/bind"
        headers = {"authorization": f"Bearer {token}", "dpop": prover.proof("POST", url, token)}
        answer = yield from request(url, headers=headers)
        return text_in(answer, "token")

    def exchange(self, token: str, audience: str, narrowed: Mapping[str, str], prover: Prover | None) -> Flow[Exchanged]:
        form = {"subject_token": token, "subject_token_type": _JWT, "audience": audience, **narrowed}
        return (yield from self._post(form, prover))

    def delegate(
        self,
        token: str,
        subject: tuple[str | None, str | None],
        narrowed: Mapping[str, str],
        prover: Prover | None,
    ) -> Flow[Exchanged]:
        """``subject``: the transaction token of a call, or the session token of its caller."""
        transaction, session = subject
        if (transaction is None) == (session is None):
            raise PlatError("delegate: give either transaction or session")
        form = {
            "subject_token": transaction or session or "",
            "subject_token_type": _JWT if transaction is None else _TRANSACTION,
            "actor_token": token,
            "actor_token_type": _JWT,
            **narrowed,
        }
        return (yield from self._post(form, prover))

    def _post(self, form: Mapping[str, str], prover: Prover | None) -> Flow[Exchanged]:
        url = f"{self._identity_url}/v1/exchange"
        headers = {} if prover is None else {"dpop": prover.proof("POST", url, None)}
        answer = yield from request(url, headers=headers, form={"grant_type": _GRANT, **form})
        seconds, scope = answer.get("expires_in"), answer.get("scope")
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise TokenUnavailableError("the response of the identity broker has no expires_in")
        scopes = tuple(scope.split()) if isinstance(scope, str) else ()
        return Exchanged(text_in(answer, "access_token"), scopes, self._clock.now() + seconds)
