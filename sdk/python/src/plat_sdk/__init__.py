"""The SDK for agents under plat: the session, HTTP clients with its token, and typed errors for refusals."""

from ._broker import Exchanged
from ._refusals import denial_in, denied_by
from .approvals import until_approved, until_approved_async
from .claims import PrincipalVerified, SessionClaims, SessionName, read_claims
from .connect import connect, connect_async
from .denied import (
    AccountNeededError,
    ApprovalPendingError,
    ApprovalRefusedError,
    BudgetExceededError,
    DenialCode,
    DenialFacts,
    DeniedError,
    RevokedError,
    ScopeMissingError,
)
from .errors import IdentityRefusedError, PlatError, TokenRefusedError, TokenUnavailableError
from .session import A2aAddress, AsyncSession, ExecResult, McpAddress, Session
from .sources import (
    IssuedToken,
    TokenRequirements,
    TokenSource,
    bootstrap,
    broker,
    fixed_token,
    token_file,
)
from .trace import current_traceparent, use_traceparent
from .verifier import (
    AsyncTokenVerifier,
    AsyncTransactionVerifier,
    TokenVerifier,
    Transaction,
    TransactionVerifier,
    Trust,
)

__all__ = [
    "A2aAddress",
    "AccountNeededError",
    "ApprovalPendingError",
    "ApprovalRefusedError",
    "AsyncSession",
    "AsyncTokenVerifier",
    "AsyncTransactionVerifier",
    "BudgetExceededError",
    "DenialCode",
    "DenialFacts",
    "DeniedError",
    "Exchanged",
    "ExecResult",
    "IdentityRefusedError",
    "IssuedToken",
    "McpAddress",
    "PlatError",
    "PrincipalVerified",
    "RevokedError",
    "ScopeMissingError",
    "Session",
    "SessionClaims",
    "SessionName",
    "TokenRefusedError",
    "TokenRequirements",
    "TokenSource",
    "TokenUnavailableError",
    "TokenVerifier",
    "Transaction",
    "TransactionVerifier",
    "Trust",
    "bootstrap",
    "broker",
    "connect",
    "connect_async",
    "current_traceparent",
    "denial_in",
    "denied_by",
    "fixed_token",
    "read_claims",
    "token_file",
    "until_approved",
    "until_approved_async",
    "use_traceparent",
]
