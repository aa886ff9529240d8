import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import {
  createJwtVerifier,
  isFault,
  issuerKeys,
  type KeyFetcher,
  type Members,
  readingClaims,
  type TimedClaims,
  timedClaims,
  userClaim,
} from '@plat/tokens'
import type { KnownPerson } from '../../../admin/index.ts'
import type { NotifierConfig } from '../config.ts'

/** Interval between key fetches, in seconds. */
const REFRESH_SECONDS = 300
/** Allowed clock skew of token times, in seconds. */
const LEEWAY_SECONDS = 60
/** Maximum length of a token, in characters. */
const TOKEN_MAX_CHARS = 16_384

/** Verifies the tokens of a notifier's callbacks (`callbackOIDC`). */
export interface BearerTokens {
  /** Returns the claims of the token in `authorization`, or null if it is missing or invalid. */
  verify(authorization: string | undefined): Promise<Members | null>
  close(): void
}

export interface BearerOptions {
  readonly dialer: KeyFetcher
  /** Additional CA bundle in PEM, or null. */
  readonly caPEM: string | null
  readonly clock: Clock
  readonly log: Log
}

interface Claims extends TimedClaims {
  readonly members: Members
}

/** Fetches the keys; retries after failures. */
export async function openBearer(
  { issuer, audience, jwksURL, discoveryURL }: NotifierConfig['callbackOIDC'],
  options: BearerOptions,
): Promise<BearerTokens> {
  const algorithms = ['RS256', 'ES256', 'EdDSA'] as const
  const common = { issuer, algorithms, refreshSeconds: REFRESH_SECONDS, ...options }
  const keys = issuerKeys({ ...common, jwksURL, discoveryURL })
  const verifier = createJwtVerifier<Claims>({
    keys,
    issuer,
    audience,
    leewaySeconds: LEEWAY_SECONDS,
    algorithms: new Set(algorithms),
    clock: options.clock,
    takesType: (typ) => typ === null || typ === 'jwt' || typ === 'at+jwt',
    decode: ({ payload }) => readingClaims(() => ({ ...timedClaims(payload), members: payload })),
  })
  await keys.start()
  return {
    async verify(authorization) {
      const token = /^Bearer +([!-~]+)$/i.exec(authorization ?? '')?.[1] ?? ''
      if (token === '' || token.length > TOKEN_MAX_CHARS) return null
      const claims = await verifier.verify(token)
      // Refuses sender-constrained tokens (RFC 7800): their key proof is not checked here.
      return isFault(claims) || claims.members.cnf !== undefined ? null : claims.members
    },
    close: () => keys.close(),
  }
}

export interface TokenPerson {
  readonly user: string
  readonly groups: readonly string[]
  readonly known: KnownPerson
}

/** Returns the person that a token names, with its groups, or null. */
export function personIn(claims: Members): TokenPerson | null {
  const user = readingClaims(() => ({ name: userClaim(claims, '') }))
  if (isFault(user)) return null
  const groups = Array.isArray(claims.groups) ? claims.groups.filter((group) => typeof group === 'string') : []
  const { iss: issuer, sub: subject, preferred_username: preferred, email, upn } = claims
  const names = [user.name, preferred, email, upn, subject].filter((name) => typeof name === 'string')
  const isKnown = typeof issuer === 'string' && typeof subject === 'string'
  return { user: user.name, groups, known: { names, subject: isKnown ? { issuer, subject } : null } }
}
