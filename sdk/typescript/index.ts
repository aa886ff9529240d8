export type { PrincipalVerified, SessionClaims } from '@plat/tokens'
export { untilApproved } from './call/approved.ts'
export { currentTraceparent, withTraceparent } from './call/trace.ts'
export { type ConnectOptions, connect } from './connect.ts'
export type { DenialCode } from './denied/codes.ts'
export {
  AccountNeededError,
  ApprovalPendingError,
  ApprovalRefusedError,
  BudgetExceededError,
  type DenialFacts,
  DeniedError,
  RevokedError,
  ScopeMissingError,
} from './denied/denied.ts'
export { denialIn, deniedBy } from './denied/error.ts'
export { PlatError } from './error.ts'
export { TokenRefusedError, type Trust } from './server/keys.ts'
export {
  callerOf,
  expressMiddleware,
  fastifyHook,
  honoMiddleware,
  type MiddlewareOptions,
} from './server/middleware.ts'
export {
  createTransactionVerifier,
  type Transaction,
  type TransactionVerifier,
  type TransactionVerifierOptions,
} from './server/transaction.ts'
export {
  createTokenVerifier,
  type RequestFacts,
  type TokenVerifier,
  type TokenVerifierOptions,
} from './server/verifier.ts'
export type { ExecResult, McpAddress, Session } from './session.ts'
export { IdentityRefusedError } from './token/ask.ts'
export { type BootstrapOptions, bootstrap } from './token/bootstrap.ts'
export { type BrokerOptions, broker } from './token/broker.ts'
export type { DelegateOptions, Exchanged, ExchangeOptions } from './token/exchange.ts'
export { fixedToken, tokenFile } from './token/file.ts'
export { readClaims } from './token/keeper.ts'
export { type IssuedToken, type TokenRequirements, type TokenSource, TokenUnavailableError } from './token/source.ts'
