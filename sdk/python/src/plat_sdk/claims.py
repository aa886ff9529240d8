"""The claims of a session token."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from ._jose import decode_base64url, parse_jws
from ._json import JsonObject, is_list, is_object, is_text, whole_number
from .errors import TokenFaultReason, TokenRefusedError, TokenUnavailableError

MAX_GROUPS = 32
MAX_ACT_DEPTH = 32
MAX_LINEAGE = 32
MAX_AUDIENCES = 16
_MAX_ID_CHARS = 2048
_THUMBPRINT_BYTES = 32

PrincipalVerified = Literal["requester", "trustedCreator", "idToken"]
_PRINCIPAL_VERIFIED: tuple[PrincipalVerified, ...] = ("requester", "trustedCreator", "idToken")

_SESSION_ID = re.compile(
    r"spiffe://(?P<trust>[a-z0-9._-]{1,255})/ns/(?P<namespace>[A-Za-z0-9._-]+)"
    r"/agent/(?P<agent>[A-Za-z0-9._-]+)/session/(?P<session>[A-Za-z0-9._-]+)"
)


@dataclass(frozen=True)
class SessionName:
    """A session, as in its SPIFFE ID."""

    trust_domain: str
    namespace: str
    agent: str
    session: str


@dataclass(frozen=True)
class SessionClaims:
    """Decoded claims of a session token. Times are Unix seconds."""

    issuer: str
    subject: str
    """``spiffe://<trust domain>/ns/<namespace>/agent/<agent>/session/<session>``"""
    trust_domain: str
    audiences: tuple[str, ...]
    issued_at: int
    not_before: int | None
    expires_at: int
    jti: str
    tenant: str
    """Tenant of the verifying key; empty without tenants."""
    namespace: str
    agent: str
    session: str
    user: str | None
    """Innermost ``act.sub`` without ``user:``. ``sub`` holds the agent, ``act`` the user: the reverse of RFC 8693."""
    actors: tuple[str, ...]
    """SPIFFE IDs of the delegating agents, nearest first."""
    scopes: tuple[str, ...]
    tier: str
    groups: tuple[str, ...]
    principal_verified: PrincipalVerified | None
    parent_jti: str | None
    delegator_jti: str | None
    delegation_jtis: tuple[str, ...]
    lineage: tuple[SessionName, ...]
    parent_session: str | None
    fork_root: str | None
    inherited_taints: tuple[str, ...]
    jkt: str | None
    """Thumbprint of the DPoP key that the token is bound to."""
    key_thumbprint: str
    """Thumbprint of the key that verified the token; empty without a verifier."""
    members: JsonObject = field(repr=False)
    """The undecoded claims."""


def read_claims(token: str) -> SessionClaims:
    """
    Return the claims of a session token without verifying it: for the agent's own token, or one that is already verified.

    Raise TokenUnavailableError if it is not a session token.
    """
    try:
        return decode_claims(parse_jws(token).payload)
    except TokenRefusedError as error:
        raise TokenUnavailableError(f"not a session token: {error}") from None


def decode_claims(members: JsonObject, key_thumbprint: str = "", tenant: str = "") -> SessionClaims:
    """Decode a payload. Does not check time, issuer and audience. Raise TokenRefusedError."""
    subject = text_claim(members, "sub")
    name = parse_session_id(subject)
    if name is None:
        raise refused('claim "sub" is not a session', "binding")
    names = tuple(members.get(claim) for claim in ("plat_ns", "plat_agent", "plat_session"))
    if names != (name.namespace, name.agent, name.session):
        raise refused('claim "sub" does not match the plat_* claims', "binding")
    groups = _words(members, "plat_groups")
    if len(groups) > MAX_GROUPS:
        raise refused(f'claim "plat_groups" has more than {MAX_GROUPS} entries')
    user, actors = _act_chain(members)
    return SessionClaims(
        issuer=text_claim(members, "iss"),
        subject=subject,
        trust_domain=name.trust_domain,
        audiences=_audiences(members.get("aud")),
        issued_at=_seconds(members, "iat"),
        not_before=_seconds(members, "nbf") if "nbf" in members else None,
        expires_at=_seconds(members, "exp"),
        jti=text_claim(members, "jti"),
        tenant=tenant,
        namespace=name.namespace,
        agent=name.agent,
        session=name.session,
        user=user,
        actors=actors,
        scopes=_words(members, "scope"),
        tier=_optional(members, "plat_tier") or "",
        groups=groups,
        principal_verified=_verification(members.get("plat_principal_verified")),
        parent_jti=_optional(members, "plat_parent_jti"),
        delegator_jti=_optional(members, "plat_delegator_jti"),
        delegation_jtis=_texts(members, "plat_delegation_jtis", MAX_ACT_DEPTH),
        lineage=_sessions(members, "plat_lineage"),
        parent_session=_optional(members, "plat_parent_session"),
        fork_root=_optional(members, "plat_fork_root"),
        inherited_taints=_words(members, "plat_inherited_taints"),
        jkt=_bound_key(members),
        key_thumbprint=key_thumbprint,
        members=members,
    )


def parse_session_id(text: str) -> SessionName | None:
    """Return the parts of a session's SPIFFE ID; None for any other text."""
    found = _SESSION_ID.fullmatch(text) if len(text) <= _MAX_ID_CHARS else None
    if found is None:
        return None
    name = SessionName(*found.group("trust", "namespace", "agent", "session"))
    return None if {name.namespace, name.agent, name.session} & {".", ".."} else name


def refused(message: str, reason: TokenFaultReason = "malformed") -> TokenRefusedError:
    """Build the error of an invalid claim."""
    return TokenRefusedError(reason, message)


def text_claim(members: JsonObject, name: str) -> str:
    """Return a required claim."""
    value = members.get(name)
    if not is_text(value):
        raise refused(f'claim "{name}" is missing or not a string')
    return value


def _optional(members: JsonObject, name: str) -> str | None:
    return text_claim(members, name) if name in members else None


def _words(members: JsonObject, name: str) -> tuple[str, ...]:
    if members.get(name, "") == "":
        return ()
    words = tuple(text_claim(members, name).split(" "))
    if "" in words:
        raise refused(f'claim "{name}" is not separated by single spaces')
    return words


def _seconds(members: JsonObject, name: str) -> int:
    value = whole_number(members.get(name))
    if value is None or value < 0:
        raise refused(f'claim "{name}" is missing or not a whole number of seconds')
    return value


def _audiences(value: object) -> tuple[str, ...]:
    values: list[Any] = [value] if isinstance(value, str) else value if is_list(value) else []
    if not 0 < len(values) <= MAX_AUDIENCES or not all(map(is_text, values)):
        raise refused('claim "aud" is missing or not a string or list of strings')
    return tuple(values)


def _verification(value: object) -> PrincipalVerified | None:
    if value is None:
        return None
    for known in _PRINCIPAL_VERIFIED:
        if value == known:
            return known
    raise refused('claim "plat_principal_verified" is bad')


def _texts(members: JsonObject, name: str, most: int) -> tuple[str, ...]:
    value: Any = members.get(name, [])
    if not is_list(value) or len(value) > most or not all(map(is_text, value)):
        raise refused(f'claim "{name}" is not a list of strings')
    return tuple(value)


def _sessions(members: JsonObject, name: str) -> tuple[SessionName, ...]:
    sessions = [parse_session_id(text) for text in _texts(members, name, MAX_LINEAGE)]
    known = tuple(one for one in sessions if one is not None)
    if len(known) != len(sessions):
        raise refused(f'claim "{name}" is not a list of sessions')
    return known


def _bound_key(members: JsonObject) -> str | None:
    """RFC 7800: an unknown confirmation method must not be ignored."""
    if "cnf" not in members:
        return None
    confirmation = members["cnf"]
    jkt = confirmation.get("jkt") if is_object(confirmation) and len(confirmation) == 1 else None
    if not isinstance(jkt, str) or len(decode_base64url(jkt) or b"") != _THUMBPRINT_BYTES:
        raise refused('claim "cnf" is not understood', "binding")
    return jkt


def _act_chain(members: JsonObject) -> tuple[str | None, tuple[str, ...]]:
    """Walk ``{sub: <agent>, act: {sub: <agent>, act: {sub: 'user:<user>'}}}`` from the outside in."""
    actors: list[str] = []
    level: JsonObject = members
    while "act" in level:
        act = level["act"]
        if not is_object(act):
            raise refused('claim "act" is not an object')
        subject = text_claim(act, "sub")
        if subject.startswith("user:"):
            if "act" in act or subject == "user:":
                raise refused('claim "act" continues after the user')
            return subject.removeprefix("user:"), tuple(actors)
        if parse_session_id(subject) is None:
            raise refused('claim "act" names neither a user nor a session')
        if len(actors) == MAX_ACT_DEPTH:
            raise refused('claim "act" is too deep')
        actors.append(subject)
        level = act
    return None, tuple(actors)
