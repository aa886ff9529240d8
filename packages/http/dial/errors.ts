import { MalformedResponseError } from '../client/head.ts'

/** A connection that the address policy forbids. */
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

/** A connection that would carry data to where it must not go. */
export class ResidencyDeniedError extends Error {
  readonly hostname: string
  /** The refused address, or the name where the jurisdiction is refused. */
  readonly address: string

  constructor(hostname: string, address: string, fault?: string) {
    super(fault === undefined ? `${hostname} leads to ${address}, where data must not go.` : `${hostname} ${fault}.`)
    this.name = 'ResidencyDeniedError'
    this.hostname = hostname
    this.address = address
  }
}

/** An answer that is larger than its reader takes. */
export class ResponseTooLargeError extends Error {
  constructor(maxBytes: number) {
    super(`The answer is larger than ${maxBytes} bytes.`)
    this.name = 'ResponseTooLargeError'
  }
}

/** No answer, or no part of one, within the time for it. */
export class TimeoutError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'TimeoutError'
  }
}

/** Whoever asked wants no answer, or no more of it. */
export class AbortedError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AbortError'
  }
}

/** All connections to one origin that a caller, or all callers together, may hold are in use. */
export class TooManyConnectionsError extends Error {
  constructor(limit: number) {
    super(`All ${limit} connections to the origin are in use.`)
    this.name = 'TooManyConnectionsError'
  }
}

/** A caller, or all callers together, wait for as many names as they may. */
export class TooManyLookupsError extends Error {
  constructor(hostname: string) {
    super(`${hostname} was not resolved: too many other names are being resolved.`)
    this.name = 'TooManyLookupsError'
  }
}

/** Why an outgoing request failed, told apart so that callers choose code and retry. */
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
  EHOSTUNREACH: 'refused',
  ENETUNREACH: 'refused',
  ETIMEDOUT: 'timeout',
  EPROTO: 'tls',
}

/** What Node says of a certificate that it does not accept (its documentation of TLS, "X509 certificate error codes"). */
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

/** Errors of this package that say what became of a connection. */
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
/** What the language throws, and Node for arguments of the wrong kind: these have codes as well. */
const BUGS = [TypeError, RangeError, ReferenceError, SyntaxError] as const

/**
 * Whether a request failed by its connection or its server: an error of the system, of TLS, or of this package. Any other error that a
 * request rejects with is a bug, and says nothing about the server.
 */
export function isDialError(error: unknown): boolean {
  if (!(error instanceof Error) || BUGS.some((kind) => error instanceof kind)) return false
  if (OWN_ERRORS.some((kind) => error instanceof kind)) return true
  if ('code' in error && typeof error.code === 'string') return true
  return error instanceof AggregateError && isDialError(error.errors[0])
}

/** Names the fault of an error of a client or of `fetchBytes`; `lost`: the connection died or spoke no HTTP. */
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
  // With several addresses the errors of all attempts come together; the first one tells.
  if (code === '' && error instanceof AggregateError) return dialFault(error.errors[0])
  return FAULTS[code] ?? 'lost'
}
