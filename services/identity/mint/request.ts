import { Body, decodeSession, dpopJkt, SESSION_FIELDS, type SessionRequest } from '@plat/http/endpoints'
import type { Proof } from '../proof/check.ts'
import { decodeProof } from '../proof/request.ts'

/** The body of `POST /v1/token` (docs/spec/broker-api.md), decoded. */
export interface MintRequest extends SessionRequest {
  readonly dpopJkt: string | null
  readonly proof: Proof | null
}

const FIELDS: ReadonlySet<string> = new Set([...SESSION_FIELDS, 'proof', 'dpopJkt'])

/** Decodes and checks the body; throws a `RefusalError` in the contract's words. */
export function decodeMintRequest(bytes: Uint8Array): MintRequest {
  const body = Body.parse(bytes, FIELDS)
  return { ...decodeSession(body), dpopJkt: dpopJkt(body), proof: decodeProof(body) }
}
