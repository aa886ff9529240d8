"""A FastMCP server on stdin and stdout that counts its calls."""

from fastmcp import FastMCP

server = FastMCP("counter")
calls = 0


@server.tool
def count(by: int = 1) -> int:
    """Counts."""
    global calls
    calls += by
    return calls


server.run(show_banner=False)
