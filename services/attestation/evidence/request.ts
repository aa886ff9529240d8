import { isObject } from '@plat/core'
import { Body, CodedRefusalError } from '@plat/http/endpoints'
import type { Members } from '@plat/tokens'
import { releaseIdIn } from '../release/request.ts'

const FIELDS: ReadonlySet<string> = new Set(['releaseId', 'proof'])

/** The body of a redemption or renewal. */
export interface EvidenceRequest {
  readonly releaseId: string
  /** A proof object of docs/spec/broker-api.md, verified by the broker; the service reads only these two members. */
  readonly proof: Members
  readonly check: string
  readonly nonce: string
}

/** Throws a `Refusal` that names the field. */
export function decodeEvidence(bytes: Uint8Array): EvidenceRequest {
  const body = Body.parse(bytes, FIELDS)
  const releaseId = releaseIdIn(body)
  const proof = body.value('proof')
  if (!isObject(proof)) throw invalid('proof is required')
  const { check, nonce } = proof
  if (typeof check !== 'string' || check === '') throw invalid('proof.check is required')
  if (typeof nonce !== 'string' || nonce === '') throw invalid('proof.nonce is required')
  return { releaseId, proof, check, nonce }
}

function invalid(message: string): CodedRefusalError {
  return new CodedRefusalError(400, 'invalid_request', message)
}
