import type { PublicKey, Signer } from '@plat/keys'
import { isFault, isObject, parseJws, signJws } from '@plat/tokens'

/** Where the keys of whoever signs are found, by their thumbprint. */
export interface StatementKeys {
  find(kid: string): PublicKey | null
}

/** What an edge says of a segment of its ledger, by its signature. */
export interface SegmentSeal {
  /** `offline.edgeId` of the edge. */
  readonly edge: string
  readonly ledgerId: string
  /** The first record. */
  readonly from: number
  /** The last record; `from - 1`: there is none, and the seal only asks how far the collector is. */
  readonly to: number
  /** Hash of the record before `from`, 64 hex digits. */
  readonly prev: string
  /** Hash of record `to`. With `prev` it says what every byte between them is. */
  readonly head: string
  /** Bytes of the lines that follow the seal. */
  readonly bytes: number
  /** From when on the first record waited for its seal, and when it was sealed (RFC 3339). */
  readonly since: string
  readonly at: string
}

/** What a collector says of an edge's ledger, by its signature: all of it up to a record is stored and will stay. */
export interface SegmentReceipt {
  /** `auditCollector.id`. */
  readonly collector: string
  readonly edge: string
  readonly ledgerId: string
  /** The last record that is stored; -1: none is. */
  readonly upTo: number
  /** Its hash; of none, 64 zeros. */
  readonly head: string
  /** SHA-256 of the seal that this answers, base64url: an old receipt answers no new question. */
  readonly seal: string
  readonly at: string
}

/** A statement as it was read. Its signature is checked only by `isSignedBy`. */
export interface Statement<T> {
  readonly says: T
  /** Signed by one of these keys? */
  isSignedBy(keys: StatementKeys): boolean
}

const SEAL_TYPE = 'plat-segment+jws'
const RECEIPT_TYPE = 'plat-segment-receipt+jws'
const HASH = /^[0-9a-f]{64}$/

/** The seal as a compact JWS. */
export async function signSeal(signer: Signer, seal: SegmentSeal): Promise<string> {
  return await signJws(signer, { typ: SEAL_TYPE }, seal)
}

/** The receipt as a compact JWS. */
export async function signSegmentReceipt(signer: Signer, receipt: SegmentReceipt): Promise<string> {
  return await signJws(signer, { typ: RECEIPT_TYPE }, receipt)
}

/** Null: it is no seal. */
export function readSeal(text: string): Statement<SegmentSeal> | null {
  return statement(text, SEAL_TYPE, sealOf)
}

/** Null: it is no receipt. */
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

/** The id that a ledger gives itself in its first record; null: this line is no such record. */
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
