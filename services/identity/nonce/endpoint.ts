import { rfc3339 } from '@plat/core'
import { peerOf } from '@plat/http'
import { Body, dpopJkt, type Endpoint, RefusalError } from '@plat/http/endpoints'
import type { Proofs } from '../proof/proofs.ts'
import type { Nonces } from './nonces.ts'

const FIELDS: ReadonlySet<string> = new Set(['check', 'dpopJkt'])

/**
 * `POST /v1/proof/nonce`: a single-use nonce for a check that binds one (docs/spec/broker-api.md). With `dpopJkt` it is bound to that key as well: the
 * answer has the `salt` that shows it.
 */
export function nonceEndpoint(nonces: Nonces, proofs: Proofs): Endpoint {
  return {
    path: '/v1/proof/nonce',
    opensWith: 'token',
    takes: 'json',
    errors: 'text',
    async handle(bytes, { socket: { remoteAddress = '' } }) {
      const body = Body.parse(bytes, FIELDS)
      const name = body.text('check')
      if (name === null || name === '') throw new RefusalError(400, 'check is required')
      if (proofs.check(name).nonce === 'none') throw new RefusalError(400, 'this check issues no nonces')
      const jkt = dpopJkt(body)
      if (jkt !== null && proofs.check(name).nonce !== 'required') {
        throw new RefusalError(400, 'this check proves nothing about a key: its proofs may come without a nonce')
      }
      const issued = await nonces.issue({ check: name, jkt }, peerOf(remoteAddress))
      if (issued === null) throw new RefusalError(429, 'too many nonces are outstanding', { 'retry-after': '1' })
      const { nonce, salt, expiresAt } = issued
      return { check: name, nonce, expiresAt: rfc3339(expiresAt), ...(salt !== null && { salt }) }
    },
  }
}
