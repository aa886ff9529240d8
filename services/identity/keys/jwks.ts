import type { PublicKey } from '@plat/keys'
import type { FastifyInstance, FastifyReply } from 'fastify'

/** docs/spec/broker-api.md, "Limits": how long key documents may be cached, in seconds. */
export const KEYS_CACHED_SECONDS = 300

/** Tenants in a key document. */
export interface PublishedTenants {
  /** Tenant of each key, by thumbprint; null: the broker's own. */
  readonly owners: ReadonlyMap<string, string | null>
  readonly namespaces: Readonly<Record<string, readonly string[]>>
}

/**
 * A JWK set (RFC 7517) as JSON: the members of each key's `kty`, and `kid`, `use`, `alg`. Of one `kid` the first. With tenants, each key
 * of a tenant has `plat_tenant`, and the set has `plat_tenants`, so that verifiers can bind keys to namespaces as the broker does.
 */
export function jwkSet(keys: Iterable<PublicKey>, tenants: PublishedTenants | null = null): Buffer {
  const entries = new Map<string, object>()
  for (const { jwk, kid, algorithm } of keys) {
    if (entries.has(kid)) continue
    const plat_tenant = tenants?.owners.get(kid) ?? undefined
    entries.set(kid, { ...jwk, kid, use: 'sig', alg: algorithm.name, plat_tenant })
  }
  return Buffer.from(JSON.stringify({ keys: [...entries.values()], plat_tenants: tenants?.namespaces }))
}

/** Key documents and what points at them are the only answers that may be cached. */
export function sendCached(reply: FastifyReply, contentType: string, body: Buffer): FastifyReply {
  return reply
    .header('content-type', contentType)
    .header('cache-control', `public, max-age=${KEYS_CACHED_SECONDS}`)
    .send(body)
}

/** `GET /.well-known/jwks.json` (docs/spec/broker-api.md). */
export function mountJwks(app: FastifyInstance, ring: { document(): Buffer }): void {
  app.get('/.well-known/jwks.json', (_request, reply) => sendCached(reply, 'application/jwk-set+json', ring.document()))
}
