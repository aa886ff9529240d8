import { PlatError } from '../error.ts'

/** A session token of a source, with the variables of the session. */
export interface IssuedToken {
  readonly token: string
  /** Variables of the session, such as `PLAT_GATEWAY_URL`; only from a bootstrap endpoint. */
  readonly env?: Readonly<Record<string, string>>
}

export interface TokenRequirements {
  /** Thumbprint of the session's DPoP key, to which the source binds the token if it can. Null without a key. */
  readonly jkt: string | null
  /** Aborts the request. */
  readonly signal: AbortSignal
}

/**
 * A source of session tokens. Called for the first token, and again before each one expires.
 *
 * @example
 * const source: TokenSource = { name: 'our vault', issue: async () => ({ token: await vault.read('plat/session') }) }
 * const session = await connect({ gatewayURL, source })
 */
export interface TokenSource {
  /** For messages: must not contain a secret. */
  readonly name: string
  /** Rejects with {@link TokenUnavailableError}; any other error counts as retryable. */
  issue(wish: TokenRequirements): Promise<IssuedToken>
}

/**
 * There is no valid token. The message never contains a token.
 *
 * @example
 * if (error instanceof TokenUnavailableError && error.retryable) comeBackLater()
 */
export class TokenUnavailableError extends PlatError {
  override readonly name = 'TokenUnavailableError'
  /** Whether a retry may help. */
  readonly retryable: boolean
  /** When to retry, in milliseconds; null if unknown. */
  readonly retryAfterMs: number | null

  constructor(
    message: string,
    options: { readonly retryable?: boolean; readonly retryAfterMs?: number | null; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.retryable = options.retryable ?? false
    this.retryAfterMs = options.retryAfterMs ?? null
  }
}
