import type { Clock } from '@plat/core'
import type { KeyStore, PublicKey, Signer } from '@plat/keys'
import type { Log } from '@plat/process'
import type { FastifyInstance } from 'fastify'
import type { IdentitySettings } from '../flags.ts'
import { jwkSet, sendCached } from '../keys/jwks.ts'
import { isKeyFile, keySource } from '../keys/key-source.ts'
import { RELOAD_EVERY_MS } from '../keys/ring.ts'
import { RollingKey } from '../keys/rolling.ts'

export const DISCOVERY_PATH = '/.well-known/openid-configuration'
export const FEDERATION_JWKS_PATH = '/.well-known/federation/jwks.json'

/** docs/spec/broker-api.md, "Federation discovery document". */
const CLAIMS = [
  'sub',
  'aud',
  'iss',
  'iat',
  'exp',
  'nbf',
  'jti',
  'plat_ns',
  'plat_agent',
  'plat_session',
  'plat_tier',
  'scope',
]

const USE = {
  flag: '-federation-key',
  algorithms: { names: ['ES256', 'RS256'], because: 'clouds take ES256 (P-256) and RS256 (RSA)' },
} as const

/** Documents of the broker for clouds, and the key that signs assertions. It never signs a session token. */
export interface Federation {
  /** `iss` of an assertion. */
  readonly issuer: string
  /** Signs assertions: ES256 or RS256, as the key is. */
  signer(): Signer
  /** Published keys, the one that signs first. */
  keys(): readonly PublicKey[]
  /** Calls `listen` whenever the keys change. */
  onChange(listen: () => void): void
  /** `GET /.well-known/openid-configuration` as JSON. */
  discovery(): Buffer
  close(): void
}

export interface FederationOptions {
  readonly settings: IdentitySettings
  readonly clock: Clock
  readonly log: Log
  readonly keys: KeyStore
}

/** Opens the key of `-federation-key` and follows it; null without the flag. Rejects when the key is of another kind. */
export async function openFederation({ settings, clock, log, keys }: FederationOptions): Promise<Federation | null> {
  if (settings.federationKey === '') return null
  const { path, open } = keySource(settings.federationKey, USE, keys)
  const issuer = federationIssuer(settings)
  const first = await open()
  const listeners: (() => void)[] = []
  const key = new RollingKey(first, {
    path,
    ...(isKeyFile(settings.federationKey) ? {} : { open }),
    use: USE,
    everyMs: RELOAD_EVERY_MS,
    lifetimeMs: settings.maxTtlMs,
    whenLost: 'keep',
    clock,
    log,
    onChange: () => {
      for (const listen of listeners) listen()
    },
  })
  await key.check()
  return {
    issuer,
    signer: () => key.signer() ?? first,
    keys: () => key.keys(),
    onChange: (listen) => void listeners.push(listen),
    discovery: () => discoveryDocument(issuer, key.keys()),
    close: () => key.close(),
  }
}

/** `-federation-issuer`, by default `-issuer`. */
export function federationIssuer({ federationIssuer: given, issuer }: IdentitySettings): string {
  return given === '' ? issuer : given
}

/** The contract's fields in the contract's order; the algorithms are those of the keys that are published. */
function discoveryDocument(issuer: string, keys: readonly PublicKey[]): Buffer {
  const document = {
    issuer,
    jwks_uri: `${issuer.replace(/\/$/, '')}${FEDERATION_JWKS_PATH}`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...new Set(keys.map(({ algorithm }) => algorithm.name))],
    claims_supported: CLAIMS,
  }
  return Buffer.from(JSON.stringify(document))
}

/** The two documents that clouds fetch (docs/spec/broker-api.md, "OIDC discovery"); without federation neither path exists. */
export function mountFederation(app: FastifyInstance, federation: Federation | null): void {
  if (federation === null) return
  app.get(DISCOVERY_PATH, (_request, reply) => sendCached(reply, 'application/json', federation.discovery()))
  app.get(FEDERATION_JWKS_PATH, (_request, reply) =>
    sendCached(reply, 'application/jwk-set+json', jwkSet(federation.keys())),
  )
}
