import { createHmac, type KeyObject } from 'node:crypto'
import { encodeBase64url, isObject } from '@plat/core'
import type { Signer } from '@plat/keys'
import { isFault, type Jws, parseJws, signJws } from '@plat/tokens'
import type { Rec } from '../types.ts'
import { readNote, type SignedNote, signNote } from './note.ts'

/** Claims of a checkpoint: the first `size` records of one ledger, by the chain's hash and the tree's root (64 hex digits each). */
export interface CheckpointBody {
  readonly ledgerId: string
  /** `seq` of the last covered record; `size` is one more. */
  readonly upTo: number
  readonly head: string
  readonly size: number
  readonly root: string
}

/** Keys that sign checkpoints; at least one, and `pq` only beside `signer`. */
export interface CheckpointKeys {
  /** Ed25519, P-256 or RSA: `jws` and `note`. */
  readonly signer: Signer | null
  /** ML-DSA over the same statement: `pq`. */
  readonly pq: Signer | null
  /** `hmac`: a statement for holders of the same key. */
  readonly hmacKey: KeyObject | null
}

/** A claim about a ledger, from a record or a file; its statements agree. Missing statements are null. */
export interface Checkpoint {
  readonly ledgerId: string
  readonly size: number
  readonly head: string | null
  readonly root: string
  /** Unverified, like the rest. */
  readonly jws: Jws | null
  readonly pq: Jws | null
  readonly hmac: Jws | null
  readonly note: SignedNote | null
}

/** `typ` of the signed statements. */
const JWS_TYPE = 'plat-checkpoint+jws'
/** Origin of a note, which is also the name of its key. */
const ORIGIN = 'plat.dev/ledger/'
const HASH = /^[0-9a-f]{64}$/

/**
 * Signs a checkpoint. Returns the ledger record with a statement for each key. With a second key the first statement contains its id (`pq`), so that
 * removing the second signature breaks the first.
 */
export async function signCheckpoint({ signer, pq, hmacKey }: CheckpointKeys, body: CheckpointBody): Promise<Rec> {
  const { ledgerId, upTo, head, size, root } = body
  const claims = { head, ledgerId, ...(pq !== null && { pq: pq.kid }), root, size, upTo }
  const typ = JWS_TYPE
  const origin = ORIGIN + ledgerId
  return {
    kind: 'checkpoint',
    upTo,
    head,
    size,
    root,
    ...(signer !== null && {
      jws: await signJws(signer, { typ }, claims),
      note: await signNote(signer, { origin, size, root }),
    }),
    ...(pq !== null && { pq: await signJws(pq, { typ }, claims) }),
    ...(hmacKey !== null && { hmac: hmacJws(hmacKey, claims) }),
  }
}

/** Returns a compact JWS with HMAC-SHA-256 (RFC 7518, section 3.2). */
function hmacJws(key: KeyObject, claims: object): string {
  const segments = [{ alg: 'HS256', typ: JWS_TYPE }, claims].map((part) =>
    encodeBase64url(Buffer.from(JSON.stringify(part))),
  )
  const input = segments.join('.')
  return `${input}.${encodeBase64url(createHmac('sha256', key).update(input).digest())}`
}

/** Parses the record of a checkpoint, and checks that its statements agree. Returns a string that says what is wrong. */
export function readCheckpointRecord(rec: Readonly<Record<string, unknown>>): Checkpoint | string {
  const { upTo, head, size, root } = rec
  const jwss = [rec.jws, rec.pq, rec.hmac].map(readStatement)
  const note = rec.note === undefined ? null : typeof rec.note === 'string' ? readNote(rec.note) : null
  if (jwss.includes('malformed')) return 'a statement of the checkpoint ("jws", "pq", "hmac") is malformed'
  if (rec.note !== undefined && note === null) return 'the checkpoint\'s "note" is malformed'
  const [jws = null, pq = null, hmac = null] = jwss.map((one) => (one === 'malformed' ? null : one))
  if ((jws === null) !== (note === null)) return 'the checkpoint lacks "jws" or "note"'
  const stated = [jws, pq, hmac].filter((one) => one !== null)
  const [first] = stated
  if (first === undefined) return 'the checkpoint lacks "jws", "note" and "hmac"'
  const agree = stated.every(
    ({ body, signedBy }) =>
      body.upTo === upTo &&
      body.head === head &&
      body.size === size &&
      body.root === root &&
      body.ledgerId === first.body.ledgerId &&
      signedBy === (pq?.jws.header.kid ?? null),
  )
  const { ledgerId } = first.body
  const noteAgrees = note === null || (note.size === size && note.root === root && note.origin === ORIGIN + ledgerId)
  if (!agree || !noteAgrees) return "the checkpoint's members and statements do not say the same"
  const { body } = first
  return { ...body, jws: jws?.jws ?? null, pq: pq?.jws ?? null, hmac: hmac?.jws ?? null, note }
}

/** Parses an external checkpoint: a ledger line, its record, a compact JWS or a note. Returns a string that says what is wrong. */
export function readCheckpointText(text: string): Checkpoint | string {
  const trimmed = text.trim()
  if (trimmed.startsWith('{')) {
    let value: unknown
    try {
      value = JSON.parse(trimmed)
    } catch {
      return 'it is not JSON'
    }
    const rec = isObject(value) && isObject(value.rec) ? value.rec : value
    return isObject(rec) ? readCheckpointRecord(rec) : 'it is not a checkpoint record'
  }
  const note = readNote(`${trimmed}\n`)
  if (note !== null) return checkpointOfNote(note)
  const statement = readStatement(trimmed)
  if (statement === null || statement === 'malformed') {
    return 'it is neither a checkpoint record, nor a compact JWS, nor a signed note'
  }
  const { jws, body } = statement
  return { jws: null, pq: null, hmac: null, note: null, ...body, [memberOf(jws.header.alg)]: jws }
}

/** Returns the checkpoint of a signed note, or a string that says what is wrong. */
export function checkpointOfNote(note: SignedNote): Checkpoint | string {
  const { origin, size, root } = note
  if (!origin.startsWith(ORIGIN)) return `the note's origin is not ${ORIGIN}<ledgerId>`
  return { ledgerId: origin.slice(ORIGIN.length), size, head: null, root, jws: null, pq: null, hmac: null, note }
}

function memberOf(alg: string): 'jws' | 'pq' | 'hmac' {
  if (alg === 'HS256') return 'hmac'
  return isPostQuantum(alg) ? 'pq' : 'jws'
}

/** Returns whether this is the JOSE name of an algorithm for `pq`. */
export function isPostQuantum(alg: string): boolean {
  return alg.startsWith('ML-DSA-')
}

/** A signed statement, unverified. */
interface Statement {
  readonly jws: Jws
  readonly body: CheckpointBody
  /** Id of the second key, if the statement requires one. */
  readonly signedBy: string | null
}

function readStatement(text: unknown): Statement | 'malformed' | null {
  if (text === undefined) return null
  const jws = typeof text === 'string' ? parseJws(text) : null
  if (jws === null || isFault(jws) || jws.header.typ !== JWS_TYPE) return 'malformed'
  const { ledgerId, upTo, head, size, root, pq = null } = jws.payload
  if (typeof ledgerId !== 'string' || typeof upTo !== 'number' || typeof size !== 'number') return 'malformed'
  if (typeof head !== 'string' || typeof root !== 'string' || !HASH.test(head) || !HASH.test(root)) return 'malformed'
  if (!Number.isSafeInteger(upTo) || upTo < 0 || size !== upTo + 1) return 'malformed'
  if (pq !== null && typeof pq !== 'string') return 'malformed'
  return { jws, body: { ledgerId, upTo, head, size, root }, signedBy: pq }
}
