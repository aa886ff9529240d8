import { MalformedResponseError } from '../client/head.ts'

/** The address policy forbids a connection. */
export class BlockedAddressError extends Error {
  readonly hostname: string
  readonly address: string

  constructor(hostname: string, address: string) {
    super(
      hostname === address
        ? `${address} must not be connected to.`
        : `${hostname} leads to ${address}, which must not be connected to.`,
    )
    this.name = 'BlockedAddressError'
    this.hostname = hostname
    this.address = address
  }
}

/** A connection would carry data outside the allowed jurisdictions. */
export class ResidencyDeniedError extends Error {
  readonly hostname: string
  /** The refused address, or the host name when its jurisdiction is refused. */
  readonly address: string

  constructor(hostname: string, address: string, fault?: string) {
    super(fault === undefined ? `${hostname} leads to ${address}, where data must not go.` : `${hostname} ${fault}.`)
    this.name = 'ResidencyDeniedError'
    this.hostname = hostname
    this.address = address
  }
}

/** A response exceeds the limit of its reader. */
export class ResponseTooLargeError extends Error {
  constructor(maxBytes: number) {
    super(`The answer is larger than ${maxBytes} bytes.`)
    this.name = 'ResponseTooLargeError'
  }
}

/** The response, or the next part of it, did not arrive in time. */
export class TimeoutError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'TimeoutError'
  }
}

/** The caller aborted the request. */
export class AbortedError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AbortError'
  }
}

/** A caller, or all callers together, use all allowed connections to an origin. */
export class TooManyConnectionsError extends Error {
  constructor(limit: number) {
    super(`All ${limit} connections to the origin are in use.`)
    this.name = 'TooManyConnectionsError'
  }
}

/** A caller, or all callers together, have reached the limit of pending name look-ups. */
export class TooManyLookupsError extends Error {
  constructor(hostname: string) {
    super(`${hostname} was not resolved: too many other names are being resolved.`)
    this.name = 'TooManyLookupsError'
  }
}

/** Why an outgoing request failed, in the categories that decide on error code and retry. */
export type DialFault =
  | 'blocked'
  | 'residency'
  | 'name'
  | 'refused'
  | 'timeout'
  | 'tls'
  | 'too_large'
  | 'aborted'
  | 'busy'
  | 'lost'

const FAULTS: Readonly<Record<string, DialFault>> = {
  ENOTFOUND: 'name',
  EAI_AGAIN: 'name',
  ECONNREFUSED: 'refused',
  // Of a Unix socket.
  ENOENT: 'refused',
  EHOSTUNREACH: 'refused',
  ENETUNREACH: 'refused',
  ETIMEDOUT: 'timeout',
  EPROTO: 'tls',
}

/** Codes of Node for a certificate that fails verification (its TLS documentation, "X509 certificate error codes"). */
const CERTIFICATE_CODES: ReadonlySet<string> = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** Errors of this package that report the fate of a connection. */
const OWN_ERRORS = [
  BlockedAddressError,
  ResidencyDeniedError,
  ResponseTooLargeError,
  TimeoutError,
  AbortedError,
  TooManyConnectionsError,
  TooManyLookupsError,
  MalformedResponseError,
] as const
/** Errors thrown by the language, and by Node for invalid arguments, which have codes as well. */
const BUGS = [TypeError, RangeError, ReferenceError, SyntaxError] as const

/**
 * Returns whether a request failed because of its connection or server: an error of the system, of TLS, or of this package. Any other error is a bug
 * and carries no information about the server.
 */
export function isDialError(error: unknown): boolean {
  if (!(error instanceof Error) || BUGS.some((kind) => error instanceof kind)) return false
  if (OWN_ERRORS.some((kind) => error instanceof kind)) return true
  if ('code' in error && typeof error.code === 'string') return true
  return error instanceof AggregateError && isDialError(error.errors[0])
}

/** Returns whether a request failed before a connection was made, so that certainly nothing of it was sent. */
export function isUnsent(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isUnsent)
  const fault = dialFault(error)
  if (fault === 'refused') return error instanceof Error && 'syscall' in error && error.syscall === 'connect'
  return fault === 'name' || fault === 'blocked' || fault === 'residency'
}

/** Returns the fault of an error of a client or of `fetchBytes`; `lost`: the connection failed or carried no HTTP. */
export function dialFault(error: unknown): DialFault {
  if (error instanceof BlockedAddressError) return 'blocked'
  if (error instanceof ResidencyDeniedError) return 'residency'
  if (error instanceof ResponseTooLargeError) return 'too_large'
  if (error instanceof TooManyConnectionsError || error instanceof TooManyLookupsError) return 'busy'
  if (!(error instanceof Error)) return 'lost'
  if (error.name === 'AbortError') return 'aborted'
  if (error.name === 'TimeoutError') return 'timeout'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code.startsWith('ERR_TLS_') || code.startsWith('ERR_SSL_') || CERTIFICATE_CODES.has(code)) return 'tls'
  // With several addresses the errors of all attempts are aggregated; the first one decides.
  if (code === '' && error instanceof AggregateError) return dialFault(error.errors[0])
  return FAULTS[code] ?? 'lost'
}
