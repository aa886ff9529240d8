"""Proofs of possession (DPoP, RFC 9449): made for an agent's calls, checked for a server."""

from __future__ import annotations

import re
import secrets
import threading
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ._flow import Clock
from ._jose import Signer, parse_jws, read_public_jwk, sha256_base64url, thumbprint
from ._json import JsonObject, is_text, whole_number
from .errors import PlatError, TokenRefusedError

PROOF_WINDOW_SECONDS = 60
PROOF_SKEW_SECONDS = 5
MAX_JTI_CHARS = 256
MAX_PROOF_CHARS = 4096
MAX_HTU_CHARS = 2048
MAX_PROOFS = 200_000
MAX_PROOFS_OF_CALLER = 20_000
SWEEP_SECONDS = 10


class Prover:
    """The key that the tokens of a session are bound to."""

    def __init__(self, clock: Clock, private_key: str | bytes | None = None) -> None:
        self._clock = clock
        self._signer = Signer(ed25519.Ed25519PrivateKey.generate() if private_key is None else _key_in(private_key))
        self.jkt = thumbprint(self._signer.jwk)
        """RFC 7638 thumbprint: ``cnf.jkt`` of the tokens that are bound to this key."""

    def proof(self, method: str, url: str, token: str | None, nonce: str | None = None) -> str:
        """``token``: its hash is part of the proof; None if the token is in the body."""
        parts = urlsplit(url)
        claims: JsonObject = {
            "jti": str(uuid.UUID(bytes=secrets.token_bytes(16), version=4)),
            "htm": method.upper(),
            "htu": f"{parts.scheme}://{parts.netloc}{parts.path or '/'}",
            "iat": int(self._clock.now()),
        }
        if token is not None:
            claims["ath"] = sha256_base64url(token)
        if nonce is not None:
            claims["nonce"] = nonce
        return self._signer.sign({"typ": "dpop+jwt", "jwk": self._signer.jwk}, claims)


def _key_in(pem: str | bytes) -> ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(pem.encode() if isinstance(pem, str) else pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The message may quote the input.
        raise PlatError("dpop key is not a private key in PEM (PKCS8)") from None
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    raise PlatError("dpop key: proofs are made with Ed25519 or P-256 keys")


@dataclass(frozen=True)
class ProvenRequest:
    """The request that a proof must match."""

    method: str
    url: str
    """The public URL: clients choose their Host header."""
    token: str = field(repr=False)
    proofs: tuple[str, ...] = field(repr=False)
    """Values of header ``DPoP``."""


class ProofVerifier:
    """Checks proofs, each of which is accepted once. Remembers used proofs in memory, within a share of each caller."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used = _UsedProofs()

    def check(self, request: ProvenRequest, jkt: str, caller: str) -> None:
        """Raise TokenRefusedError unless the request has a new proof of the key for this request."""
        if len(request.proofs) != 1 or request.proofs[0] == "":
            raise _bad("the header DPoP is missing" if not any(request.proofs) else "the header DPoP must come once")
        text = request.proofs[0]
        if len(text) > MAX_PROOF_CHARS:
            raise _bad("the proof is too long")
        payload = self._verified(text, jkt)
        self._check_request(payload, request)
        until = self._checked_time(payload)
        jti = payload.get("jti")
        if not is_text(jti) or len(jti) > MAX_JTI_CHARS:
            raise _bad(f'"jti" of the proof is missing, or longer than {MAX_JTI_CHARS} characters')
        self._used.add((jkt, jti), caller, until, self._clock.now())

    @staticmethod
    def _verified(text: str, jkt: str) -> JsonObject:
        try:
            jws = parse_jws(text)
        except TokenRefusedError:
            raise _bad("the proof is not a well-formed compact JWS") from None
        if jws.type != "dpop+jwt":
            raise _bad('"typ" of the proof must be dpop+jwt')
        key = read_public_jwk(jws.header.get("jwk"))
        if key is None or key.algorithm != jws.algorithm:
            raise _bad('"jwk" of the proof is not a public key that is accepted, or "alg" is not for it')
        if not key.verifies(jws.signed, jws.signature):
            raise _bad("the signature of the proof is wrong")
        if key.kid != jkt:
            raise _bad("the proof is by another key than the token is bound to")
        return jws.payload

    @staticmethod
    def _check_request(payload: JsonObject, request: ProvenRequest) -> None:
        if payload.get("htm") != request.method:
            raise _bad('"htm" of the proof is another method')
        htu = payload.get("htu")
        url = normal_htu(htu) if isinstance(htu, str) else None
        if url is None or url != normal_htu(request.url):
            raise _bad('"htu" of the proof is another URL')
        if payload.get("ath") != sha256_base64url(request.token):
            raise _bad('"ath" of the proof is missing, or of another token')

    def _checked_time(self, payload: JsonObject) -> float:
        issued_at = whole_number(payload.get("iat"))
        if issued_at is None:
            raise _bad('"iat" of the proof is missing or not an integer')
        now = self._clock.now()
        if issued_at > now + PROOF_SKEW_SECONDS:
            raise _bad('"iat" of the proof is in the future')
        if issued_at < int(now) - PROOF_WINDOW_SECONDS:
            raise _bad('"iat" of the proof is too long ago')
        return issued_at + PROOF_WINDOW_SECONDS + PROOF_SKEW_SECONDS


class _UsedProofs:
    """A full store refuses: a proof that is not stored could be used again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_caller: OrderedDict[str, OrderedDict[tuple[str, str], float]] = OrderedDict()
        self._size = 0
        self._sweeps_at = 0.0

    def add(self, proof: tuple[str, str], caller: str, until: float, now: float) -> None:
        with self._lock:
            self._sweep(now)
            # A key is bound to the tokens of one agent, so that a proof is searched in its caller's share only.
            own = self._by_caller.setdefault(caller, OrderedDict())
            self._drop(own, now)
            if proof in own:
                raise _bad("the proof was used before")
            if len(own) >= MAX_PROOFS_OF_CALLER or self._size >= MAX_PROOFS:
                raise _bad("too many proofs at once: try again later")
            own[proof] = until
            self._size += 1

    def _sweep(self, now: float) -> None:
        if now < self._sweeps_at:
            return
        self._sweeps_at = now + SWEEP_SECONDS
        for name, proofs in list(self._by_caller.items()):
            self._drop(proofs, now)
            if not proofs:
                del self._by_caller[name]

    def _drop(self, proofs: OrderedDict[tuple[str, str], float], now: float) -> None:
        """Drop expired proofs from the front: they are stored in the order of use, which is that of ``iat`` but for the skew."""
        while proofs and next(iter(proofs.values())) <= now:
            proofs.popitem(last=False)
            self._size -= 1


_UNSAFE = re.compile(r"[^\x21-\x7e]|\\")
_HTTP = re.compile(r"https?://", re.IGNORECASE)
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def normal_htu(text: str) -> str | None:
    """Normalize an ``htu`` for comparison (RFC 9449, section 4.3; RFC 3986, section 6.2.2); None if it is not a URL of HTTP."""
    if not _HTTP.match(text) or len(text) > MAX_HTU_CHARS or _UNSAFE.search(text):
        return None
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.username is not None or parts.password is not None:
        return None
    shown = f"[{host}]" if ":" in host else host
    place = shown if port is None or port == _DEFAULT_PORTS[parts.scheme] else f"{shown}:{port}"
    path = _ESCAPED.sub(_normal_escape, parts.path or "/")
    whole = urljoin(f"{parts.scheme}://{place}/", path) if not path.startswith("//") else f"{parts.scheme}://{place}{path}"
    return whole.removesuffix("/")


def _normal_escape(found: re.Match[str]) -> str:
    character = chr(int(found[0][1:], 16))
    return character if _UNRESERVED.fullmatch(character) else found[0].upper()


def _bad(message: str) -> TokenRefusedError:
    return TokenRefusedError("binding", message)
