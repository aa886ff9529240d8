import type { FastifyInstance } from 'fastify'
import type { KeyRing } from './ring.ts'

/** Document 1, "Limits": how long key documents may be cached, in seconds. */
export const KEYS_CACHED_SECONDS = 300

/** `GET /.well-known/jwks.json`: the one document that may be cached. */
export function mountJwks(app: FastifyInstance, ring: KeyRing): void {
  app.get('/.well-known/jwks.json', (_request, reply) =>
    reply
      .header('content-type', 'application/jwk-set+json')
      .header('cache-control', `public, max-age=${KEYS_CACHED_SECONDS}`)
      .send(ring.document()),
  )
}
