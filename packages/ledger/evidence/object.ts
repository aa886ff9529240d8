import { hash } from 'node:crypto'
import { isObject, type JsonObject } from '@plat/core'
import type { PublicJwk, Signer } from '@plat/keys'
import { isFault, type Jws, parseJws, signJws } from '@plat/tokens'

/** First line of an evidence object: its subject and its proof. Unverified, like the rest. */
export interface EvidenceHead {
  /** Version of the format. */
  readonly evidence: 1
  readonly id: string
  /** When it was made (RFC 3339), and who requested it. */
  readonly at: string
  readonly by: string
  readonly ledgerId: string
  /** JsonObject that its records have in common; empty when it holds every record of its range. */
  readonly about: Readonly<Record<string, string>>
  /** First and last record of the searched range. */
  readonly from: number
  readonly to: number
  readonly records: number
  /** Record of the checkpoint of its proofs. */
  readonly checkpoint: JsonObject
  /** Record of that checkpoint's anchor in a transparency log; null without one. */
  readonly anchor: JsonObject | null
  /** Public keys of checkpoints at that time. A verifier must bring its own. */
  readonly keys: readonly (PublicJwk & { readonly kid: string })[]
}

/** Last line of an unbroken run of records, and the hashes from it to the checkpoint's root. */
export interface RunProof {
  readonly seq: number
  /** 64 hex digits each (RFC 6962, section 2.1.1). */
  readonly inclusion: readonly string[]
}

/** Parts of an object: head, unmodified ledger lines, proofs. */
export interface EvidenceParts {
  readonly head: EvidenceHead
  /** Without LF. */
  readonly lines: readonly Buffer[]
  readonly proofs: readonly RunProof[]
}

const TYPE = 'plat-evidence+jws'
const LF = Buffer.from('\n')

/** Returns an object as lines: head, records, proofs, and the seal, a JWS over the SHA-256 of all bytes before it. */
export async function sealEvidence({ head, lines, proofs }: EvidenceParts, signer: Signer): Promise<Buffer> {
  const texts = [Buffer.from(JSON.stringify(head)), ...lines, Buffer.from(JSON.stringify({ proofs }))]
  const body = Buffer.concat(texts.flatMap((text) => [text, LF]))
  const { id, ledgerId } = head
  const seal = await signJws(signer, { typ: TYPE }, { id, ledgerId, sha256: hash('sha256', body, 'hex') })
  return Buffer.concat([body, Buffer.from(`${seal}\n`)])
}

/** Claims of a seal. */
export interface Seal {
  readonly jws: Jws
  readonly id: string
  readonly ledgerId: string
  readonly sha256: string
}

/** Returns null when the text is not a seal. */
export function readSealLine(text: string): Seal | null {
  const jws = parseJws(text)
  if (isFault(jws) || jws.header.typ !== TYPE) return null
  const { id, ledgerId, sha256 } = jws.payload
  if (typeof id !== 'string' || typeof ledgerId !== 'string' || typeof sha256 !== 'string') return null
  return { jws, id, ledgerId, sha256 }
}

/** Parses the first line of an object. Returns null when it is malformed. */
export function readEvidenceHead(text: string): EvidenceHead | null {
  const value = jsonOrNull(text)
  return isHead(value) ? value : null
}

/** Returns null when the text is malformed. */
export function readProofs(text: string): readonly RunProof[] | null {
  const value = jsonOrNull(text)
  if (!isObject(value) || !Array.isArray(value.proofs)) return null
  return value.proofs.every(isRunProof) ? value.proofs : null
}

const HASH = /^[0-9a-f]{64}$/

function isRunProof(value: unknown): value is RunProof {
  if (!isObject(value) || !isPlace(value.seq)) return false
  return Array.isArray(value.inclusion) && value.inclusion.every((one) => typeof one === 'string' && HASH.test(one))
}

function isHead(value: unknown): value is EvidenceHead {
  if (!isObject(value) || value.evidence !== 1) return false
  const { id, at, by, ledgerId, about, from, to, records, checkpoint, anchor, keys } = value
  const isNamed = [id, at, by, ledgerId].every((text) => typeof text === 'string')
  const isAbout = isObject(about) && Object.values(about).every((text) => typeof text === 'string')
  const isProven = isObject(checkpoint) && (anchor === null || isObject(anchor)) && Array.isArray(keys)
  return isNamed && isAbout && isProven && [from, to, records].every(isPlace)
}

function isPlace(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
