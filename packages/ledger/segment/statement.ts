import { isObject } from '@plat/core'
import type { PublicKey, Signer } from '@plat/keys'
import { isFault, parseJws, signJws } from '@plat/tokens'

/** Keys of signers by thumbprint. */
export interface StatementKeys {
  find(kid: string): PublicKey | null
}

/** Signed statement of an edge about a segment of its ledger. */
export interface SegmentSeal {
  /** `offline.edgeId` of the edge. */
  readonly edge: string
  readonly ledgerId: string
  /** The first record. */
  readonly from: number
  /** The last record; `from - 1` when there is none, and the seal only queries the progress of the collector. */
  readonly to: number
  /** Hash of the record before `from`, 64 hex digits. */
  readonly prev: string
  /** Hash of record `to`. With `prev` it determines every byte between. */
  readonly head: string
  /** Bytes of the lines that follow the seal. */
  readonly bytes: number
  /** Since when the first record waited for its seal, and when it was sealed (RFC 3339). */
  readonly since: string
  readonly at: string
}

/** Signed statement of a collector about an edge's ledger: everything up to a record is stored permanently. */
export interface SegmentReceipt {
  /** `auditCollector.id`. */
  readonly collector: string
  readonly edge: string
  readonly ledgerId: string
  /** Last stored record; -1 when there is none. */
  readonly upTo: number
  /** Its hash; 64 zeros when there is none. */
  readonly head: string
  /** SHA-256 of the seal that this answers, base64url, so that an old receipt cannot answer a new seal. */
  readonly seal: string
  readonly at: string
}

/** A parsed statement. Only `isSignedBy` verifies its signature. */
export interface Statement<T> {
  readonly says: T
  /** Returns whether one of these keys signed it. */
  isSignedBy(keys: StatementKeys): boolean
}

const SEAL_TYPE = 'plat-segment+jws'
const RECEIPT_TYPE = 'plat-segment-receipt+jws'
const HASH = /^[0-9a-f]{64}$/

/** Returns the seal as a compact JWS. */
export async function signSeal(signer: Signer, seal: SegmentSeal): Promise<string> {
  return await signJws(signer, { typ: SEAL_TYPE }, seal)
}

/** Returns the receipt as a compact JWS. */
export async function signSegmentReceipt(signer: Signer, receipt: SegmentReceipt): Promise<string> {
  return await signJws(signer, { typ: RECEIPT_TYPE }, receipt)
}

/** Returns null when the text is not a seal. */
export function readSeal(text: string): Statement<SegmentSeal> | null {
  return statement(text, SEAL_TYPE, sealOf)
}

/** Returns null when the text is not a receipt. */
export function readSegmentReceipt(text: string): Statement<SegmentReceipt> | null {
  return statement(text, RECEIPT_TYPE, receiptOf)
}

function statement<T>(text: string, typ: string, decode: (claims: Claims) => T | null): Statement<T> | null {
  const jws = parseJws(text)
  if (isFault(jws) || jws.header.typ !== typ) return null
  const says = decode(jws.payload)
  if (says === null) return null
  const { kid, alg } = jws.header
  return {
    says,
    isSignedBy(keys) {
      const found = kid === null ? null : keys.find(kid)
      return found?.algorithm.name === alg && found.algorithm.verify(jws.input, found.key, jws.signature)
    },
  }
}

type Claims = Readonly<Record<string, unknown>>

function sealOf(claims: Claims): SegmentSeal | null {
  const { edge, ledgerId, from, to, prev, head, bytes, since, at } = claims
  if (!isText(edge) || !isText(ledgerId) || !isHash(prev) || !isHash(head) || !isTime(since) || !isTime(at)) return null
  if (!isCount(from) || !isCount(bytes) || typeof to !== 'number' || !Number.isSafeInteger(to) || to < from - 1)
    return null
  return { edge, ledgerId, from, to, prev, head, bytes, since, at }
}

function receiptOf(claims: Claims): SegmentReceipt | null {
  const { collector, edge, ledgerId, upTo, head, seal, at } = claims
  if (!isText(collector) || !isText(edge) || !isText(ledgerId) || !isText(seal) || !isHash(head) || !isTime(at))
    return null
  if (typeof upTo !== 'number' || !Number.isSafeInteger(upTo) || upTo < -1) return null
  return { collector, edge, ledgerId, upTo, head, seal, at }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isHash(value: unknown): value is string {
  return typeof value === 'string' && HASH.test(value)
}

function isTime(value: unknown): value is string {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value))
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** Returns the ledger id stated in the first record; null when the line is another record. */
export function ledgerIdOf(line: Uint8Array): string | null {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(line).toString())
  } catch {
    return null
  }
  const rec = isObject(value) && isObject(value.rec) ? value.rec : {}
  return isText(rec.ledgerId) ? rec.ledgerId : null
}
