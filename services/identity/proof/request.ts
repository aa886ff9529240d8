import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import { type Body, RefusalError } from '@plat/http/endpoints'
import type { Proof } from './check.ts'

const FIELDS: ReadonlySet<string> = new Set([
  'check',
  'sandbox',
  'nonce',
  'token',
  'document',
  'signature',
  'format',
  'x5c',
  'evidence',
])

/** Certificates of a chain at most. */
const MAX_CHAIN = 10

/** The member `proof` of a mint request; null when it is absent. Throws a `RefusalError` in the contract's words. */
export function decodeProof(request: Body): Proof | null {
  const proof = request.object('proof', FIELDS)
  if (proof === null) return null
  const check = proof.text('check')
  if (check === null || check === '') throw new RefusalError(400, 'unknown proof check: proof.check is required')
  const x5c = proof.texts('x5c')
  if (x5c.length > MAX_CHAIN) throw new RefusalError(400, `invalid JSON: proof.x5c: at most ${MAX_CHAIN} certificates`)
  return {
    check,
    sandbox: proof.text('sandbox'),
    nonce: proof.text('nonce'),
    token: proof.text('token'),
    document: proof.text('document'),
    signature: proof.text('signature'),
    format: proof.text('format'),
    x5c,
    evidence: proof.value('evidence'),
  }
}

/** The leaf that the client holds the key of, as DER; null on a plain connection and for a client without one. */
export function clientCertificate({ socket }: IncomingMessage): Uint8Array | null {
  return socket instanceof TLSSocket ? (socket.getPeerX509Certificate()?.raw ?? null) : null
}
