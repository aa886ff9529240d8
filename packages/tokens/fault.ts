/** Why a token is refused: the closed set of label `reason` of `plat_gateway_auth_failures_total`. */
export type AuthReason =
  | 'missing'
  | 'malformed'
  | 'signature'
  | 'expired'
  | 'audience'
  | 'issuer'
  | 'typ'
  | 'binding'
  | 'kid'

/** A refused token, as a value. The message is one line for the caller and never quotes the token. */
export interface TokenFault {
  readonly kind: 'fault'
  readonly reason: AuthReason
  readonly message: string
}

export function fault(reason: AuthReason, message: string): TokenFault {
  return { kind: 'fault', reason, message }
}

/** Distinguishes a fault from other results of token readers. */
export function isFault(value: object): value is TokenFault {
  return 'kind' in value && value.kind === 'fault'
}
