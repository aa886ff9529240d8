import { readFile } from 'node:fs/promises'
import { whenReady } from '@plat/core'
import { createJwtVerifier, isFault, issuerKeys, type TokenFault, type VerificationResult } from '@plat/tokens'
import { decodePerson, type PersonClaims } from './claims.ts'
import { ACCESS_TOKEN_TYPES, type IssuerOptions } from './issuer.ts'

/** An identity provider whose tokens name people (docs/spec/gateway.md, `adminAuth.oidc`). */
export interface PeopleConfig {
  readonly issuer: string
  readonly audience: string
  /** Empty: discovery. */
  readonly jwksURL: string
  readonly jwksRefreshSeconds: number
  readonly usernameClaim: string
  readonly groupsClaim: string
  readonly algorithms: readonly ('RS256' | 'ES256' | 'EdDSA')[]
  readonly caFile: string
  readonly leewaySeconds: number
}

/** A person authenticated by an identity provider. */
export interface Person {
  readonly known: {
    readonly names: readonly string[]
    readonly subject: { readonly issuer: string; readonly subject: string } | null
  }
  readonly user: string
  readonly groups: readonly string[]
  readonly auth: PersonClaims['auth']
}

/** Identifies people by the bearer tokens of one provider. */
export interface People {
  identify(token: string): Person | TokenFault | Promise<Person | TokenFault>
  close(): void
}

function knownOf({ issuer, subject, names }: PersonClaims): Person['known'] {
  return { names, subject: subject === null ? null : { issuer, subject } }
}

/** Reads the CA file and fetches the keys. Rejects if the file cannot be read; failed fetches are retried. */
export async function openPeople(
  config: PeopleConfig,
  { dialer, clock, log }: Pick<IssuerOptions, 'dialer' | 'clock' | 'log'>,
): Promise<People> {
  const { issuer, audience, caFile, leewaySeconds } = config
  const caPEM = caFile === '' ? null : await readFile(caFile, 'utf8')
  const keys = issuerKeys({ ...config, refreshSeconds: config.jwksRefreshSeconds, dialer, clock, log, caPEM })
  const verifier = createJwtVerifier<PersonClaims>({
    keys,
    issuer,
    audience,
    leewaySeconds,
    algorithms: new Set(config.algorithms),
    clock,
    takesType: (typ) => ACCESS_TOKEN_TYPES.has(typ),
    decode: (jws) => decodePerson(jws, config),
  })
  await keys.start()
  const person = (claims: VerificationResult<PersonClaims>): Person | TokenFault =>
    isFault(claims) ? claims : { user: claims.user, groups: claims.groups, known: knownOf(claims), auth: claims.auth }
  return {
    identify: (token) => whenReady(verifier.verify(token), person),
    close: () => keys.close(),
  }
}
