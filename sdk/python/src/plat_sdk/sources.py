"""Sources of session tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from ._broker import refused_early, request, text_in
from ._flow import Call, Clock, Flow, Pause
from ._json import JsonObject, is_object
from .claims import PrincipalVerified
from .errors import TokenUnavailableError

SERVICE_ACCOUNT_TOKEN = "/var/run/plat/bootstrap/sa-token"
WAIT_SECONDS = 20
"""Duration of one long poll: below the maximum of 25."""
POLL_EVERY_SECONDS = 1
"""
Least time between the starts of two polls. A broker that stops answers at once, and so does one whose poll another
process of the pod replaced.
"""


@dataclass(frozen=True)
class IssuedToken:
    """A session token of a source, with the variables of the session, which only a bootstrap endpoint has."""

    token: str = field(repr=False)
    env: Mapping[str, str] | None = None


@dataclass(frozen=True)
class TokenRequirements:
    """``jkt``: thumbprint of the session's DPoP key, to which the source binds the token if it can."""

    jkt: str | None


@runtime_checkable
class TokenSource(Protocol):
    """
    A source of session tokens, called for the first token and again before each one expires. With ``connect_async``
    ``issue`` may be a coroutine function; a plain one is called in a thread. Raises TokenUnavailableError; any other
    error counts as retryable.
    """

    @property
    def name(self) -> str:
        """For messages: must not contain a secret."""
        ...

    def issue(self, wanted: TokenRequirements, /) -> IssuedToken | Awaitable[IssuedToken]: ...


class BuiltinSource:
    """A source that is written as a flow, for threads and tasks alike."""

    name: str

    def issued(self, wanted: TokenRequirements) -> Flow[IssuedToken]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self.name}>"


AnySource = TokenSource | BuiltinSource


def issued_by(source: AnySource, wanted: TokenRequirements) -> Flow[IssuedToken]:
    """Issue a token by any kind of source."""
    if isinstance(source, BuiltinSource):
        return (yield from source.issued(wanted))
    issued: object = yield Call(_Issue(source, wanted))
    if not isinstance(issued, IssuedToken):
        raise TokenUnavailableError(f"{source.name} returned no IssuedToken")
    return issued


@dataclass(frozen=True)
class _Issue:
    source: TokenSource
    wanted: TokenRequirements

    def __call__(self) -> object:
        return self.source.issue(self.wanted)


class token_file(BuiltinSource):  # noqa: N801
    """A token in a file that another program renews, such as a mounted Secret. Read again before the token expires."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self.name = f"the file {path}"

    def issued(self, wanted: TokenRequirements) -> Flow[IssuedToken]:
        token: str = yield Call(lambda: read_token(self._path))
        return IssuedToken(token)


class fixed_token(BuiltinSource):  # noqa: N801
    """One token that is not renewed: the session ends with it."""

    name = "the given token"

    def __init__(self, token: str) -> None:
        self._token: str | None = token

    def issued(self, wanted: TokenRequirements) -> Flow[IssuedToken]:
        token, self._token = self._token, None
        if token is None:
            raise TokenUnavailableError("it cannot be renewed")
        return IssuedToken(token)
        yield


class bootstrap(BuiltinSource):  # noqa: N801
    """
    Tokens for a pod of a warm pool, from the bootstrap endpoint at ``url``. Waits until a session adopts the pod: a response
    425 is repeated without end, 503 and lost responses a few times after their ``Retry-After``, any other refusal of the
    broker never.
    """

    def __init__(self, url: str, *, service_account_token_file: str | Path = SERVICE_ACCOUNT_TOKEN) -> None:
        self._url = f"{url.removesuffix('/')}/v1/bootstrap?wait={WAIT_SECONDS}"
        self._file = Path(service_account_token_file)
        self.name = f"the bootstrap endpoint at {origin_of(url)}"

    def issued(self, wanted: TokenRequirements) -> Flow[IssuedToken]:
        while True:
            # Read for each request, because it rotates.
            secret: str = yield Call(lambda: read_token(self._file))
            headers = {"authorization": f"Bearer {secret}"}
            began = Clock().monotonic()
            answer = yield from refused_early(request(self._url, headers=headers, wait=WAIT_SECONDS))
            if answer is None:
                yield Pause(max(0.0, began + POLL_EVERY_SECONDS - Clock().monotonic()))
                continue
            if answer.get("attested") is True:
                raise TokenUnavailableError("the session is attested: it redeems a release instead")
            return IssuedToken(text_in(answer, "token"), _texts_in(answer.get("env")))


class broker(BuiltinSource):  # noqa: N801
    """
    Mints session tokens with the broker token, for a server that runs agents itself. ``broker_token``: the token, or the path
    of its file. It can mint any token: it belongs to such a server, and never to an agent.
    """

    def __init__(
        self,
        identity_url: str,
        broker_token: str | Path,
        *,
        namespace: str,
        agent: str,
        session: str,
        scopes: Sequence[str],
        user: str | None = None,
        groups: Sequence[str] | None = None,
        principal_verified: PrincipalVerified | None = None,
        tier: str | None = None,
        ttl_seconds: int | None = None,
    ) -> None:
        self._url = f"{identity_url.removesuffix('/')}/v1/token"
        self._secret = broker_token
        optional: dict[str, Any] = {
            "user": user,
            "groups": None if groups is None else list(groups),
            "principalVerified": principal_verified,
            "tier": tier,
            "ttlSeconds": ttl_seconds,
        }
        self._wanted: JsonObject = {
            "namespace": namespace,
            "agent": agent,
            "session": session,
            "scopes": list(scopes),
            **{name: value for name, value in optional.items() if value is not None},
        }
        self.name = f"the identity broker at {origin_of(identity_url)}"

    def issued(self, wanted: TokenRequirements) -> Flow[IssuedToken]:
        secret = self._secret
        token: str = secret if isinstance(secret, str) else (yield Call(lambda: read_token(secret)))
        if token == "":
            raise TokenUnavailableError("the broker token is empty")
        body = self._wanted if wanted.jkt is None else {**self._wanted, "dpopJkt": wanted.jkt}
        answer = yield from request(self._url, headers={"authorization": f"Bearer {token}"}, json_body=body)
        return IssuedToken(text_in(answer, "token"))


def read_token(path: Path) -> str:
    """Return the only line of a file."""
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        name = type(error).__name__
        raise TokenUnavailableError(f"the file {path} cannot be read ({name})", retryable=True) from None
    if token == "":
        raise TokenUnavailableError(f"the file {path} is empty", retryable=True)
    return token


def origin_of(url: str) -> str:
    """Return scheme, host and port, for messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _texts_in(value: object) -> Mapping[str, str]:
    members = value if is_object(value) else {}
    return {name: text for name, text in members.items() if isinstance(text, str)}
