"""Compact JWS, JWK and thumbprints, as strict as the gateway reads them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from ._json import JsonObject, is_list, is_object, read_object
from .errors import TokenRefusedError

MAX_TOKEN_CHARS = 12 * 1024
MAX_TOKEN_DEPTH = 40

Algorithm = Literal["EdDSA", "ES256"]
_P256_BYTES = 32
_SECRET_MEMBERS = ("d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv")


def encode_base64url(data: bytes) -> str:
    """Encode without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_base64url(text: str) -> bytes | None:
    """Decode exactly what ``encode_base64url`` returns: each value has one encoding."""
    try:
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    return data if encode_base64url(data) == text else None


def sha256_base64url(text: str) -> str:
    """Hash ASCII text, as ``ath`` of a proof does."""
    return encode_base64url(hashlib.sha256(text.encode("ascii", "replace")).digest())


@dataclass(frozen=True)
class PublicKey:
    """A public key for verification. The key determines the algorithm, never the content of a token."""

    kid: str
    algorithm: Algorithm
    key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey

    def verifies(self, data: bytes, signature: bytes) -> bool:
        try:
            if isinstance(self.key, ed25519.Ed25519PublicKey):
                self.key.verify(signature, data)
            elif len(signature) != 2 * _P256_BYTES:
                return False
            else:
                r, s = (int.from_bytes(half, "big") for half in (signature[:_P256_BYTES], signature[_P256_BYTES:]))
                self.key.verify(encode_dss_signature(r, s), data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


def public_jwk(key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey) -> dict[str, str]:
    """Return the members that the thumbprint covers."""
    if isinstance(key, ed25519.Ed25519PublicKey):
        return {"crv": "Ed25519", "kty": "OKP", "x": encode_base64url(key.public_bytes_raw())}
    numbers = key.public_numbers()
    x, y = (encode_base64url(value.to_bytes(_P256_BYTES, "big")) for value in (numbers.x, numbers.y))
    return {"crv": "P-256", "kty": "EC", "x": x, "y": y}


def public_key_of(key: object) -> PublicKey | None:
    """Return a public key of a supported kind, Ed25519 or P-256; None for any other."""
    if isinstance(key, ed25519.Ed25519PublicKey):
        return PublicKey(thumbprint(public_jwk(key)), "EdDSA", key)
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return PublicKey(thumbprint(public_jwk(key)), "ES256", key)
    return None


def thumbprint(jwk: dict[str, str]) -> str:
    """RFC 7638, for the members that ``public_jwk`` returns."""
    text = json.dumps(jwk, sort_keys=True, separators=(",", ":"))
    return encode_base64url(hashlib.sha256(text.encode()).digest())


def read_public_jwk(value: object) -> PublicKey | None:
    """Read an untrusted JWK; None if it is malformed, not canonical, private, or of another kind than Ed25519 and P-256."""
    if not is_object(value) or any(name in value for name in _SECRET_MEMBERS):
        return None
    if value.get("use", "sig") != "sig":
        return None
    operations: Any = value.get("key_ops", ["verify"])
    if not is_list(operations) or "verify" not in operations:
        return None
    key = _imported(value)
    if key is None or value.get("alg", key.algorithm) != key.algorithm:
        return None
    return key


def _imported(jwk: JsonObject) -> PublicKey | None:
    x, y = (decode_base64url(text) if isinstance(text, str) else None for text in (jwk.get("x"), jwk.get("y")))
    if x is None:
        return None
    try:
        if jwk.get("kty") == "OKP" and jwk.get("crv") == "Ed25519":
            return public_key_of(ed25519.Ed25519PublicKey.from_public_bytes(x))
        if jwk.get("kty") == "EC" and jwk.get("crv") == "P-256" and y is not None and len(x) == len(y) == _P256_BYTES:
            return public_key_of(ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + x + y))
    except ValueError:
        return None
    return None


@dataclass(frozen=True)
class Signer:
    """A private key for proofs."""

    private_key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey

    @property
    def algorithm(self) -> Algorithm:
        return "EdDSA" if isinstance(self.private_key, ed25519.Ed25519PrivateKey) else "ES256"

    @property
    def jwk(self) -> dict[str, str]:
        return public_jwk(self.private_key.public_key())

    def __repr__(self) -> str:
        return f"Signer({self.algorithm})"

    def sign(self, header: JsonObject, claims: JsonObject) -> str:
        parts = [json.dumps(one, separators=(",", ":")).encode() for one in ({"alg": self.algorithm, **header}, claims)]
        data = ".".join(encode_base64url(part) for part in parts).encode()
        return f"{data.decode()}.{encode_base64url(self._signature(data))}"

    def _signature(self, data: bytes) -> bytes:
        if isinstance(self.private_key, ed25519.Ed25519PrivateKey):
            return self.private_key.sign(data)
        r, s = decode_dss_signature(self.private_key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(_P256_BYTES, "big") + s.to_bytes(_P256_BYTES, "big")


@dataclass(frozen=True)
class Jws:
    """A well-formed compact JWS (RFC 7515). Untrusted until its signature is verified."""

    header: JsonObject
    algorithm: str
    kid: str | None
    type: str | None
    """Lower case, without ``application/``."""
    payload: JsonObject
    signed: bytes
    signature: bytes


def parse_jws(text: str) -> Jws:
    """Parse strictly, so that each signed content has one text. Raise TokenRefusedError."""
    if len(text) > MAX_TOKEN_CHARS:
        raise _malformed("token is too long")
    segments = text.split(".", 3)
    if len(segments) != 3:
        raise _malformed("token is not three segments")
    head, body, tail = (decode_base64url(segment) for segment in segments)
    header, payload = read_object(head, MAX_TOKEN_DEPTH), read_object(body, MAX_TOKEN_DEPTH)
    if header is None or payload is None or tail is None:
        raise _malformed("token segments are not canonical base64url of JSON objects")
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ")
    if not isinstance(algorithm, str):
        raise _malformed('token header has no "alg"')
    if not isinstance(kid, (str, type(None))) or not isinstance(kind, (str, type(None))):
        raise _malformed('token header "kid" or "typ" is not a string')
    # RFC 7515 section 4.1.11: a critical extension must be understood, and none is supported.
    if "crit" in header or "b64" in header:
        raise _malformed("token header has critical members")
    media_type = None if kind is None else kind.lower().removeprefix("application/")
    signed = ".".join(segments[:2]).encode("ascii")
    return Jws(header, algorithm, kid, media_type, payload, signed, tail)


def _malformed(message: str) -> TokenRefusedError:
    return TokenRefusedError("malformed", message)
