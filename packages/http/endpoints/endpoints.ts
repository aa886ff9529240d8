/** Shared POST endpoint support of the broker and the attestation service: routing, strict bodies, refusals, and session members. */
export { Body } from './body.ts'
export { BODY_TIMEOUT_MS, type Endpoint, endpointRoute, isJson, overloadedRefusal } from './endpoint.ts'
export { publicUrl } from './public-url.ts'
export { CodedRefusalError, OAuthError, RefusalError } from './refusal.ts'
export { decodeSession, dpopJkt, SESSION_FIELDS, type SessionRequest } from './session.ts'
export { createTokenGuard, type TokenGuard } from './token-guard.ts'
