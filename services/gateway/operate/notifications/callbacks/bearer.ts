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

/** How often keys are fetched anew, in seconds. */
const REFRESH_SECONDS = 300
/** Skew granted on the times of a token, in seconds. */
const LEEWAY_SECONDS = 60
/** Longest token that is looked at, in characters. */
const TOKEN_MAX_CHARS = 16_384

/** Verifies the tokens of one notifier's callbacks (`callbackOIDC`). */
export interface BearerTokens {
  /** The claims of the token in `authorization`; null: there is none that is valid. */
  verify(authorization: string | undefined): Promise<Members | null>
  close(): void
}

export interface BearerOptions {
  readonly dialer: KeyFetcher
  /** CA bundle beside the system's; null: none. */
  readonly caPEM: string | null
  readonly clock: Clock
  readonly log: Log
}

interface Claims extends TimedClaims {
  readonly members: Members
}

/** Fetches the keys; when that fails it is tried again. */
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
      // What only the holder of a key may show is no proof here: nobody checks that key.
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

/** Whom a token names, with the groups that it says; null: nobody. */
export function personIn(claims: Members): TokenPerson | null {
  const user = readingClaims(() => ({ name: userClaim(claims, '') }))
  if (isFault(user)) return null
  const groups = Array.isArray(claims.groups) ? claims.groups.filter((group) => typeof group === 'string') : []
  const { iss: issuer, sub: subject, preferred_username: preferred, email, upn } = claims
  const names = [user.name, preferred, email, upn, subject].filter((name) => typeof name === 'string')
  const isKnown = typeof issuer === 'string' && typeof subject === 'string'
  return { user: user.name, groups, known: { names, subject: isKnown ? { issuer, subject } : null } }
}
