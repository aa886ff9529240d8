"""Token verifier for servers of the packages ``mcp`` and ``fastmcp``. Needs the extra ``mcp``."""

from __future__ import annotations

from mcp.server.auth.provider import AccessToken

from .errors import TokenRefusedError
from .verifier import AsyncTokenVerifier


class McpTokenVerifier:
    """
    A ``TokenVerifier`` of ``mcp`` for plat's tokens: ``MCPServer(token_verifier=McpTokenVerifier(verifier), auth=...)``. It sees no
    request, so that it cannot check proofs: use ``PlatMiddleware`` for servers that anything but the gateway can reach.
    """

    def __init__(self, verifier: AsyncTokenVerifier) -> None:
        self._verifier = verifier

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            claims = await self._verifier.verify_token(token)
        except TokenRefusedError:
            return None
        return AccessToken(
            token=token,
            client_id=f"{claims.namespace}/{claims.agent}",
            scopes=list(claims.scopes),
            expires_at=claims.expires_at,
            subject=claims.user or claims.subject,
            claims=dict(claims.members),
        )
