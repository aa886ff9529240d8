import { rfc3339 } from '@plat/core'
import { Body, type Endpoint, Refusal } from '@plat/http/endpoints'
import type { Proofs } from '../proof/proofs.ts'
import type { Nonces } from './nonces.ts'

const FIELDS: ReadonlySet<string> = new Set(['check'])

/** `POST /v1/proof/nonce`: a single-use nonce for a check that binds one (document 1). */
export function nonceEndpoint(nonces: Nonces, proofs: Proofs): Endpoint {
  return {
    path: '/v1/proof/nonce',
    opensWith: 'token',
    takes: 'json',
    errors: 'text',
    async handle(bytes) {
      const name = Body.parse(bytes, FIELDS).text('check')
      if (name === null || name === '') throw new Refusal(400, 'check is required')
      if (proofs.check(name).nonce === 'none') throw new Refusal(400, 'this check issues no nonces')
      const issued = await nonces.issue(name)
      if (issued === null) throw new Refusal(429, 'too many nonces are outstanding', { 'retry-after': '1' })
      return { check: name, nonce: issued.nonce, expiresAt: rfc3339(issued.expiresAt) }
    },
  }
}
