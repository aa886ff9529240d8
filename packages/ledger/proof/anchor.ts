import { hash } from 'node:crypto'
import { canonicalJson, isObject, type JsonObject, readJsonObject } from '@plat/core'
import type { PublicKey } from '@plat/keys'
import type { Rec } from '../types.ts'
import { type Checkpoint, checkpointOfNote } from './checkpoint.ts'
import { rootOfPath } from './inclusion.ts'
import { isSignedBy, readNote, type SignedNote, verifiesNote } from './note.ts'
import { leafHash } from './tree.ts'

/** Response of a transparency log to a submitted checkpoint: enough to prove inclusion without the log. */
export interface LogProof {
  /** The entry as the log hashes it, base64. */
  readonly entry: string
  /** Index in the log's tree of `size` entries. */
  readonly index: number
  readonly size: number
  /** Hashes from the entry to the root of that tree, 64 hex digits each (RFC 6962, section 2.1.1). */
  readonly inclusion: readonly string[]
  /** The log's signed note of that tree. */
  readonly note: string
  /** Additional promise of Rekor v1: its signature over entry, time, index and log id. */
  readonly promise?: LogPromise
}

export interface LogPromise {
  /** Base64. */
  readonly signature: string
  /** Seconds since the epoch. */
  readonly integratedTime: number
  readonly logID: string
  /** Index over all trees of the log. */
  readonly logIndex: number
}

/** A checkpoint in a transparency log, as recorded by `anchor`. */
export interface Anchor {
  readonly checkpoint: number
  /** Content of the checkpoint, from the note of the log entry. */
  readonly covers: Checkpoint
  /** Base URL of the log. */
  readonly url: string
  readonly proof: LogProof
  readonly logNote: SignedNote
}

/** Member `to` of `anchor` records for a transparency log. */
const TO_LOG = 'transparencyLog'
const HASH = /^[0-9a-f]{64}$/

/** Returns the record of an anchor, with all that is needed to verify it. */
export function anchorRecord(url: string, checkpoint: { seq: number; rec: JsonObject }, proof: LogProof): Rec {
  const { size, head, note } = checkpoint.rec
  const { promise, ...rest } = proof
  return {
    kind: 'anchor',
    to: TO_LOG,
    url,
    checkpoint: checkpoint.seq,
    size: Number(size),
    head: String(head),
    note: String(note),
    log: { ...rest, ...(promise !== undefined && { promise: { ...promise } }) },
  }
}

/** Returns whether this is the record of an anchor in a transparency log. */
export function isLogAnchor(rec: JsonObject): boolean {
  return rec.kind === 'anchor' && rec.to === TO_LOG
}

/** Parses the record of an anchor and checks everything except signatures. Returns a string that says what is wrong. */
export function readAnchor(rec: JsonObject): Anchor | string {
  const { checkpoint, size, head, url } = rec
  const note = typeof rec.note === 'string' ? readNote(rec.note) : null
  const proof = isLogProof(rec.log) ? rec.log : null
  const logNote = proof === null ? null : readNote(proof.note)
  if (note === null || proof === null || logNote === null) return 'the anchor lacks its "note" or what the log answered'
  if (typeof checkpoint !== 'number' || typeof url !== 'string') return 'the anchor lacks "checkpoint" or "url"'
  if (typeof head !== 'string' || !HASH.test(head) || size !== note.size) return "the anchor's members do not agree"
  const covers = checkpointOfNote(note)
  if (typeof covers === 'string') return covers
  const fault = entryFault(note, proof) ?? inclusionFault(proof, logNote)
  return fault ?? { checkpoint, covers: { ...covers, head }, url, proof, logNote }
}

/** Returns null when the entry contains this note and one of its signatures. */
function entryFault(note: SignedNote, proof: LogProof): string | null {
  const stated = statedIn(proof.entry)
  if (stated === null) return 'the entry of the log is of no kind that is known'
  const isOurs =
    stated.sha256 === hash('sha256', note.text, 'hex') &&
    note.signatures.some(({ signature }) => signature.equals(stated.signature))
  return isOurs ? null : 'the entry of the log is about something else than this checkpoint'
}

function inclusionFault({ entry, index, size, inclusion }: LogProof, logNote: SignedNote): string | null {
  const path = inclusion.map((one) => Buffer.from(one, 'hex'))
  const root = rootOfPath(leafHash(Buffer.from(entry, 'base64')), index, size, path)
  if (root === logNote.root && size === logNote.size) return null
  return "the entry is not included under the root of the log's checkpoint"
}

/** Returns hash and signature of an entry: Rekor's `hashedrekord` (0.0.1 and 0.0.2) and `rekord` (0.0.1). */
function statedIn(entry: string): { readonly sha256: string; readonly signature: Buffer } | null {
  const spec = readJsonObject(Buffer.from(entry, 'base64'))?.spec
  if (!isObject(spec)) return null
  const { data, signature } = isObject(spec.hashedRekordV002) ? spec.hashedRekordV002 : spec
  if (!isObject(data) || !isObject(signature) || typeof signature.content !== 'string') return null
  const sha256 =
    typeof data.digest === 'string'
      ? Buffer.from(data.digest, 'base64').toString('hex')
      : isObject(data.hash) && data.hash.algorithm === 'sha256'
        ? data.hash.value
        : null
  return typeof sha256 === 'string' ? { sha256, signature: Buffer.from(signature.content, 'base64') } : null
}

/** Returns null when the log's keys signed its response, otherwise what they did not sign. */
export function logFault({ proof, logNote }: Anchor, keys: readonly PublicKey[]): string | null {
  // The key name of a Rekor v1 log is the part of its origin before the tree id.
  const [name = ''] = logNote.origin.split(' - ')
  const isName = (one: string) => one === name || one === logNote.origin
  if (!isSignedBy(logNote, keys, isName)) return "the log's checkpoint is not signed by a given key of the log"
  const { entry, promise } = proof
  if (promise === undefined) return null
  const { signature, integratedTime, logID, logIndex } = promise
  const promised = Buffer.from(canonicalJson({ body: entry, integratedTime, logID, logIndex }))
  const bytes = Buffer.from(signature, 'base64')
  if (keys.some((key) => verifiesNote(key, promised, bytes))) return null
  return "the log's promise is not signed by a given key of the log"
}

/** Checks the exact form of a log response, without additional members. */
export function isLogProof(value: unknown): value is LogProof {
  if (!isObject(value)) return false
  const { entry, index, size, inclusion, note, promise } = value
  const isPath = Array.isArray(inclusion) && inclusion.every((one) => typeof one === 'string' && HASH.test(one))
  const isPlace = Number.isSafeInteger(index) && Number.isSafeInteger(size)
  const isWhole = typeof entry === 'string' && typeof note === 'string' && isPath && isPlace
  return isWhole && (promise === undefined || isPromise(promise))
}

function isPromise(value: unknown): value is LogPromise {
  if (!isObject(value)) return false
  const { signature, integratedTime, logID, logIndex } = value
  const isPlace = Number.isSafeInteger(integratedTime) && Number.isSafeInteger(logIndex)
  return typeof signature === 'string' && typeof logID === 'string' && isPlace
}
