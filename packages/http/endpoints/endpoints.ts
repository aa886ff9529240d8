/** What the broker and the attestation service answer POSTs with: router, strict bodies, refusals, and the session they name. */
export { Body } from './body.ts'
export { BODY_TIMEOUT_MS, type Endpoint, endpointRoute, isJson, overloadedRefusal } from './endpoint.ts'
export { publicUrl } from './public-url.ts'
export { CodedRefusalError, OAuthError, RefusalError } from './refusal.ts'
export { decodeSession, dpopJkt, SESSION_FIELDS, type SessionRequest } from './session.ts'
export { createTokenGuard, type TokenGuard } from './token-guard.ts'
