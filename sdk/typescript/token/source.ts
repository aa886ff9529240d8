import { PlatError } from '../error.ts'

/** What a source gives: a session token, and what it was told beside it. */
export interface IssuedToken {
  readonly token: string
  /** Variables of the session, such as `PLAT_GATEWAY_URL`; only a bootstrap endpoint tells them. */
  readonly env?: Readonly<Record<string, string>>
}

/** What is wanted of a source. */
export interface TokenRequirements {
  /** Thumbprint of the session's DPoP key; a source that can have the token bound to it does. Null: no key. */
  readonly jkt: string | null
  /** Given up. */
  readonly signal: AbortSignal
}

/**
 * Where session tokens come from. It is asked for the first one, and again before each one ends.
 *
 * @example
 * const source: TokenSource = { name: 'our vault', issue: async () => ({ token: await vault.read('plat/session') }) }
 * const session = await connect({ gatewayURL, source })
 */
export interface TokenSource {
  /** For messages: it must not hold a secret. */
  readonly name: string
  /** Rejects with {@link TokenUnavailableError}; anything else that it throws counts as one that is worth another try. */
  issue(wish: TokenRequirements): Promise<IssuedToken>
}

/**
 * There is no token, or none that still counts. Its message never holds one.
 *
 * @example
 * if (error instanceof TokenUnavailableError && error.retryable) comeBackLater()
 */
export class TokenUnavailableError extends PlatError {
  override readonly name = 'TokenUnavailableError'
  /** Whether another try may help. */
  readonly retryable: boolean
  /** When, in milliseconds; null: nobody said. */
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
