"""Trusted keys of a verifier, from a key document (JWKS) that is fetched again, or from PEM."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.serialization import load_pem_public_key

from ._flow import Clock, Fetch, FetchFailedError, Flow, Handle, Reply, Wait
from ._jose import PublicKey, public_key_of, read_public_jwk
from ._json import JsonObject, is_list, is_object, read_json
from .errors import PlatError

REFRESH_SECONDS = 300.0
MIN_FETCH_INTERVAL = 10.0
"""Minimum seconds between fetches, whatever tokens name."""
FETCH_TIMEOUT = 5.0
MAX_JWKS_BYTES = 1024 * 1024
MAX_KEYS = 1024
MAX_TENANTS = 1024


@dataclass(frozen=True)
class Trust:
    """Trusted keys: the URL of a key document, or public keys in PEM."""

    jwks_url: str | None = None
    public_keys: Sequence[str] = ()

    def __post_init__(self) -> None:
        if (self.jwks_url is None) == (len(self.public_keys) == 0):
            raise PlatError("trust: give either jwks_url or public_keys")


@dataclass(frozen=True)
class KeySet:
    """Keys by ``kid``, their tenants, and the tenants of namespaces; the empty string is the broker itself."""

    keys: Mapping[str, PublicKey]
    tenant_of_key: Mapping[str, str]
    tenant_of_namespace: Mapping[str, str]

    def find(self, kid: str | None) -> PublicKey | None:
        """Return the key with this ``kid``; for None the only key."""
        if kid is not None:
            return self.keys.get(kid)
        return next(iter(self.keys.values())) if len(self.keys) == 1 else None


class KeySource:
    """
    Keys of a document: fetched on first use, in the background every five minutes, and for an unknown ``kid``, but never more
    often than every ten seconds. A failed fetch keeps the keys; a key that is missing in a valid document is removed.
    """

    def __init__(self, trust: Trust, clock: Clock, spawn: Callable[[Flow[None]], Handle]) -> None:
        self._url = trust.jwks_url
        self._clock = clock
        self._spawn = spawn
        self._lock = threading.Lock()
        self._fetching: Handle | None = None
        self._fetched_at = float("-inf")
        self._refreshed_at = float("-inf")
        given = [_key_in(pem) for pem in trust.public_keys]
        self._set = KeySet({key.kid: key for key in given}, {}, {})

    def current(self) -> Flow[KeySet]:
        """Return the keys; fetches them if there are none yet."""
        with self._lock:
            handle = self._refresh() if self._is_stale() else None
            is_first = self._refreshed_at == float("-inf")
        if handle is not None and is_first:
            yield Wait(handle)
        return self._set

    def refreshed(self) -> Flow[KeySet]:
        """Return the keys for a token with an unknown ``kid``."""
        with self._lock:
            handle = self._refresh()
        if handle is not None:
            yield Wait(handle)
        return self._set

    def _is_stale(self) -> bool:
        return self._url is not None and self._clock.monotonic() - self._refreshed_at >= REFRESH_SECONDS

    def _refresh(self) -> Handle | None:
        """Caller must hold the lock."""
        if self._url is None:
            return None
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        now = self._clock.monotonic()
        if now - self._fetched_at < MIN_FETCH_INTERVAL:
            return None
        self._fetched_at = now
        self._fetching = self._spawn(self._load(self._url))
        return self._fetching

    def _load(self, url: str) -> Flow[None]:
        try:
            reply: Reply = yield Fetch("GET", url, {}, b"", FETCH_TIMEOUT, MAX_JWKS_BYTES)
            if reply.status == 200 and reply.body is not None:
                self._set = read_jwks(reply.body)
                self._refreshed_at = self._clock.monotonic()
        except (FetchFailedError, ValueError):
            # The previous keys stay in use.
            return


def read_jwks(document: bytes) -> KeySet:
    """Read a key document. Raise ValueError if it is not one, or contradicts itself about tenants."""
    members = read_json(document)
    listed = members.get("keys") if is_object(members) else None
    if not is_object(members) or not is_list(listed) or len(listed) > MAX_KEYS:
        raise ValueError("no JWK set, or one with too many keys")
    names, namespaces = _tenants_in(members)
    keys: dict[str, PublicKey] = {}
    tenants: dict[str, str] = {}
    for jwk in listed:
        key = read_public_jwk(jwk)
        # A key for DPoP or a cloud never verifies a session.
        if key is None or key.algorithm != "EdDSA" or not is_object(jwk):
            continue
        kid, tenant = jwk.get("kid"), jwk.get("plat_tenant", "")
        if not isinstance(tenant, str) or (tenant != "" and tenant not in names):
            raise ValueError('"plat_tenant" of a key is not in "plat_tenants"')
        if tenants.setdefault(key.kid, tenant) != tenant:
            raise ValueError("a key belongs to two tenants")
        keys.setdefault(kid if isinstance(kid, str) else key.kid, key)
    return KeySet(keys, tenants, namespaces)


def _tenants_in(members: JsonObject) -> tuple[frozenset[str], Mapping[str, str]]:
    listed = members.get("plat_tenants", {})
    if not is_object(listed) or len(listed) > MAX_TENANTS:
        raise ValueError('"plat_tenants" must be an object of limited size')
    namespaces: dict[str, str] = {}
    for tenant, names in listed.items():
        if tenant == "" or not is_list(names) or not all(isinstance(name, str) for name in names):
            raise ValueError('"plat_tenants" must map names to lists of namespaces')
        for name in names:
            if name in namespaces:
                raise ValueError("a namespace belongs to two tenants")
            namespaces[name] = tenant
    return frozenset(listed), namespaces


def _key_in(pem: str) -> PublicKey:
    try:
        key = public_key_of(load_pem_public_key(pem.encode()))
    except ValueError:
        key = None
    if key is None or key.algorithm != "EdDSA":
        raise PlatError("public_keys: not an Ed25519 public key in PEM")
    return key
