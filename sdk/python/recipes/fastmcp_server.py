"""
A server of FastMCP that serves verified callers only. Its entry at plat has ``auth`` with a token exchange for the audience
``reports``; only the gateway reaches it, and so it requires no proofs.
"""

import os

from fastmcp import FastMCP

from plat_sdk import AsyncTokenVerifier, Trust
from plat_sdk.asgi import PlatMiddleware, current_caller

server = FastMCP("reports")


@server.tool
def my_reports() -> str:
    """The reports of the calling user."""
    caller = current_caller()
    return f"reports of {caller.user}, requested by {caller.agent}"


verifier = AsyncTokenVerifier(
    Trust(jwks_url=os.environ["PLAT_IDENTITY_URL"] + "/.well-known/jwks.json"),
    audience="reports",
    issuer="plat-identity",
    proof="none",
)
app = PlatMiddleware(server.http_app(), verifier=verifier, open_paths=frozenset(["/healthz"]))

if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8000")))
