"""Verifiers for servers behind the gateway and for called agents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import httpx

from ._flow import AsyncRunner, Clock, Flow, SyncRunner
from ._jose import Jws, PublicKey, parse_jws
from ._json import JsonObject, is_object
from ._keys import KeySet, KeySource, Trust
from .claims import SessionClaims, decode_claims, parse_session_id, refused
from .proof import ProofVerifier, ProvenRequest

__all__ = [
    "AsyncTokenVerifier",
    "AsyncTransactionVerifier",
    "ProofPolicy",
    "TokenVerifier",
    "Transaction",
    "TransactionVerifier",
    "Trust",
]

TOKEN_LEEWAY_SECONDS = 30
TRANSACTION_LEEWAY_SECONDS = 5
TRANSACTION_TYPE = "txntoken+jwt"
MAX_TXN_CHARS = 256

_OTHER_TYPES = frozenset((TRANSACTION_TYPE, "dpop+jwt"))
_SCHEME = re.compile(r"(bearer|dpop) +([^ ]+)", re.IGNORECASE)

ProofPolicy = Literal["bound", "all", "none"]
"""
When a DPoP proof is required. ``bound``, the default: for tokens that are bound to a key. ``all``: always. ``none``: never,
for servers that only the gateway can reach, since it presents bound tokens of agents and does not have their keys.
"""

Headers = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Transaction:
    """The call of another agent, as the gateway vouches for it: its ID in the ledger, and the calling session."""

    txn: str
    caller: SessionClaims


class _TokenCore:
    def __init__(
        self,
        keys: KeySource,
        clock: Clock,
        audience: str,
        issuer: str | None,
        trust_domain: str | None,
        proof: ProofPolicy,
        leeway_seconds: float,
    ) -> None:
        self._keys = keys
        self._clock = clock
        self._audience = audience
        self._issuer = issuer
        self._trust_domain = trust_domain
        self._proof: ProofPolicy = proof
        self._leeway = leeway_seconds
        self._proofs = ProofVerifier(clock)

    def token(self, token: str) -> Flow[SessionClaims]:
        jws = parse_jws(token)
        if jws.algorithm != "EdDSA":
            raise refused("token algorithm is not accepted", "signature")
        if jws.type in _OTHER_TYPES:
            raise refused('token of this "typ" is not accepted', "typ")
        keys, key = yield from _verified(self._keys, jws)
        tenant = keys.tenant_of_key.get(key.kid, "")
        claims = decode_claims(jws.payload, key.kid, tenant)
        # A tenant with its own key must not sign tokens of another tenant, nor of namespaces without a tenant.
        if keys.tenant_of_namespace.get(claims.namespace, "") != tenant:
            raise refused("token is signed by a key that is not of its tenant", "binding")
        if self._trust_domain is not None and claims.trust_domain != self._trust_domain:
            raise refused("token is of another trust domain", "binding")
        _check_time(claims, self._clock, self._leeway)
        if self._issuer is not None and claims.issuer != self._issuer:
            raise refused("token is of another issuer", "issuer")
        if self._audience not in claims.audiences:
            raise refused("token is for another audience", "audience")
        return claims

    def request(self, method: str, url: str, headers: Headers) -> Flow[SessionClaims]:
        values = _values_of(headers, "authorization")
        if len(values) > 1:
            raise refused("the header Authorization must occur once")
        if not values or values[0] == "":
            raise refused("a session token is required", "missing")
        found = _SCHEME.fullmatch(values[0])
        if found is None:
            raise refused('send one token as "Authorization: Bearer <token>"')
        scheme, token = found[1].lower(), found[2]
        claims = yield from self.token(token)
        if self._proof == "none" or (claims.jkt is None and self._proof == "bound"):
            return claims
        if claims.jkt is None:
            raise refused("the token is not bound to a key, which this server requires", "binding")
        if scheme != "dpop":
            message = "the token is bound to a key and came without a proof"
            raise refused(f'{message}; for a server that only the gateway can reach set proof to "none"', "binding")
        proven = ProvenRequest(method.upper(), url, token, tuple(_values_of(headers, "dpop")))
        self._proofs.check(proven, claims.jkt, f"{claims.namespace}/{claims.agent}")
        return claims


class _TransactionCore:
    def __init__(self, keys: KeySource, clock: Clock, audience: str, namespace: str, agent: str) -> None:
        self._keys = keys
        self._clock = clock
        self._audience = audience
        self._scopes = (f"agents:{namespace}/{agent}",)

    def transaction(self, token: str | None) -> Flow[Transaction]:
        if token is None or token == "":
            raise refused("a transaction token is required", "missing")
        jws = parse_jws(token)
        if jws.algorithm != "EdDSA":
            raise refused("token algorithm is not accepted", "signature")
        if jws.type != TRANSACTION_TYPE:
            raise refused('token of this "typ" is not accepted', "typ")
        _, key = yield from _verified(self._keys, jws)
        transaction = decode_transaction(jws.payload, key.kid)
        caller = transaction.caller
        if caller.scopes != self._scopes:
            raise refused("the transaction is for another agent", "audience")
        _check_time(caller, self._clock, TRANSACTION_LEEWAY_SECONDS)
        if self._audience not in caller.audiences:
            raise refused("token is for another audience", "audience")
        return transaction


class TokenVerifier:
    """
    Verifies session tokens of callers: signature, times, issuer, audience, the binding of names, and possession of the key of
    a bound token. Create it once. ``audience``: the one that the gateway exchanges tokens for at this server.
    """

    def __init__(
        self,
        trust: Trust,
        audience: str,
        *,
        issuer: str | None = None,
        trust_domain: str | None = None,
        proof: ProofPolicy = "bound",
        leeway_seconds: float = TOKEN_LEEWAY_SECONDS,
        transport: httpx.BaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        used = clock or Clock()
        self._runner = SyncRunner(transport or httpx.HTTPTransport(), used)
        keys = KeySource(trust, used, self._runner.spawn)
        self._core = _TokenCore(keys, used, audience, issuer, trust_domain, proof, leeway_seconds)

    def verify_request(self, method: str, url: str, headers: Headers) -> SessionClaims:
        """
        Return the caller of a request. ``url``: its public URL, not from the Host header, which callers choose. Raise
        TokenRefusedError: respond with 401.
        """
        return self._runner.run(self._core.request(method, url, headers))

    def verify_token(self, token: str) -> SessionClaims:
        """Return the claims of a token without checking possession. Raise TokenRefusedError."""
        return self._runner.run(self._core.token(token))

    def close(self) -> None:
        """Stop updating the keys."""
        self._runner.close()


class AsyncTokenVerifier:
    """As ``TokenVerifier``, for asyncio."""

    def __init__(
        self,
        trust: Trust,
        audience: str,
        *,
        issuer: str | None = None,
        trust_domain: str | None = None,
        proof: ProofPolicy = "bound",
        leeway_seconds: float = TOKEN_LEEWAY_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        used = clock or Clock()
        self._runner = AsyncRunner(transport or httpx.AsyncHTTPTransport(), used)
        keys = KeySource(trust, used, self._runner.spawn)
        self._core = _TokenCore(keys, used, audience, issuer, trust_domain, proof, leeway_seconds)

    async def verify_request(self, method: str, url: str, headers: Headers) -> SessionClaims:
        """As ``TokenVerifier.verify_request``."""
        return await self._runner.run(self._core.request(method, url, headers))

    async def verify_token(self, token: str) -> SessionClaims:
        """As ``TokenVerifier.verify_token``."""
        return await self._runner.run(self._core.token(token))

    async def close(self) -> None:
        """Stop updating the keys."""
        await self._runner.close()


class TransactionVerifier:
    """
    Verifies the header ``Txn-Token`` of calls that come through the gateway to this agent. ``audience``: ``txnTokens.audience``
    of the gateway, by default its trust domain.
    """

    def __init__(
        self,
        trust: Trust,
        *,
        audience: str,
        namespace: str,
        agent: str,
        transport: httpx.BaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        used = clock or Clock()
        self._runner = SyncRunner(transport or httpx.HTTPTransport(), used)
        keys = KeySource(trust, used, self._runner.spawn)
        self._core = _TransactionCore(keys, used, audience, namespace, agent)

    def verify(self, token: str | None) -> Transaction:
        """Return the call of another agent. Raise TokenRefusedError: respond with 401."""
        return self._runner.run(self._core.transaction(token))

    def close(self) -> None:
        """Stop updating the keys."""
        self._runner.close()


class AsyncTransactionVerifier:
    """As ``TransactionVerifier``, for asyncio."""

    def __init__(
        self,
        trust: Trust,
        *,
        audience: str,
        namespace: str,
        agent: str,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        used = clock or Clock()
        self._runner = AsyncRunner(transport or httpx.AsyncHTTPTransport(), used)
        keys = KeySource(trust, used, self._runner.spawn)
        self._core = _TransactionCore(keys, used, audience, namespace, agent)

    async def verify(self, token: str | None) -> Transaction:
        """As ``TransactionVerifier.verify``."""
        return await self._runner.run(self._core.transaction(token))

    async def close(self) -> None:
        """Stop updating the keys."""
        await self._runner.close()


def decode_transaction(payload: JsonObject, key_thumbprint: str = "") -> Transaction:
    """Decode a transaction token with the decoder of session tokens. Raise TokenRefusedError."""
    txn, subject, context = payload.get("txn"), payload.get("sub"), payload.get("tctx")
    if not isinstance(txn, str) or txn == "" or len(txn) > MAX_TXN_CHARS:
        raise refused('"txn" is missing or too long')
    if not is_object(context):
        raise refused('"tctx" is missing')
    name = parse_session_id(subject) if isinstance(subject, str) else None
    if name is None:
        raise refused('"sub" is not a session', "binding")
    members: JsonObject = {
        claim: payload[claim]
        for claim in (
            *("sub", "aud", "iat", "exp", "act", "scope", "plat_groups", "plat_principal_verified"),
            *("plat_inherited_taints", "plat_delegation_jtis", "plat_lineage"),
        )
        if claim in payload
    }
    members["iss"] = payload.get("iss", "transaction token")
    if "jti" in context:
        members["jti"] = context["jti"]
    members.update(plat_ns=name.namespace, plat_agent=name.agent, plat_session=name.session)
    return Transaction(txn, decode_claims(members, key_thumbprint))


def _verified(source: KeySource, jws: Jws) -> Flow[tuple[KeySet, PublicKey]]:
    """Return the key that signed the token. The key determines the algorithm."""
    keys = yield from source.current()
    key = keys.find(jws.kid)
    if key is None:
        keys = yield from source.refreshed()
        key = keys.find(jws.kid)
    if key is None:
        raise refused("token is signed by no key that is trusted", "kid")
    if not key.verifies(jws.signed, jws.signature):
        raise refused("token signature is wrong", "signature")
    return keys, key


def _check_time(claims: SessionClaims, clock: Clock, leeway: float) -> None:
    now = clock.now()
    if now >= claims.expires_at + leeway:
        raise refused("token has expired", "expired")
    if now < max(claims.not_before or 0, claims.issued_at) - leeway:
        raise refused("token is not valid yet", "expired")


def _values_of(headers: Headers, name: str) -> list[str]:
    """Every value of a header, whose name may be in any case."""
    pairs: Iterable[tuple[str, str]]
    if isinstance(headers, httpx.Headers):
        pairs = headers.multi_items()
    elif isinstance(headers, Mapping):
        pairs = headers.items()
    else:
        pairs = headers
    return [value for key, value in pairs if key.lower() == name]
