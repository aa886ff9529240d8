import type { PublicKey, Signer } from '@plat/keys'
import { isFault, isObject, parseJws, signJws } from '@plat/tokens'
import type { Rec } from '../types.ts'
import { isSignedBy, type Note, readNote, signNote } from './note.ts'

/** What a checkpoint binds: the first `size` records of one ledger, by the chain's hash and by the tree's root (64 hex digits each). */
export interface CheckpointBody {
  readonly ledgerId: string
  /** `seq` of the last record that is covered; `size` is one more. */
  readonly upTo: number
  readonly head: string
  readonly size: number
  readonly root: string
}

/** A claim about a ledger, from a record of it or from a file. What a note alone does not say is null. */
export interface Checkpoint {
  readonly ledgerId: string
  readonly size: number
  readonly head: string | null
  readonly root: string
  /** Compact JWS, unverified. */
  readonly jws: string | null
  readonly note: Note | null
}

/** `typ` of the signed statement. */
const JWS_TYPE = 'plat-checkpoint+jws'
/** A note's origin, which is also the name of its key. */
const ORIGIN = 'plat.dev/ledger/'
const HASH = /^[0-9a-f]{64}$/

/** Signs a checkpoint: the record that goes into the ledger, with a JWS and a C2SP note over the same size and root. */
export async function signCheckpoint(signer: Signer, body: CheckpointBody): Promise<Rec> {
  const { ledgerId, upTo, head, size, root } = body
  const jws = await signJws(signer, { typ: JWS_TYPE }, { head, ledgerId, root, size, upTo })
  const note = await signNote(signer, { origin: ORIGIN + ledgerId, size, root })
  return { kind: 'checkpoint', upTo, head, size, root, jws, note }
}

/** Reads the record of a checkpoint, and checks that its three statements agree; a text says what is wrong. */
export function readCheckpointRecord(rec: Readonly<Record<string, unknown>>): Checkpoint | string {
  const { upTo, head, size, root, jws, note } = rec
  if (typeof jws !== 'string' || typeof note !== 'string') return 'the checkpoint lacks "jws" or "note"'
  const signed = readJws(jws)
  const tree = readNote(note)
  if (signed === null) return 'the checkpoint\'s "jws" is malformed'
  if (tree === null) return 'the checkpoint\'s "note" is malformed'
  const agree =
    signed.upTo === upTo &&
    signed.head === head &&
    signed.size === size &&
    signed.root === root &&
    tree.size === size &&
    tree.root === root &&
    tree.origin === ORIGIN + signed.ledgerId
  if (!agree) return 'the checkpoint\'s members, its "jws" and its "note" do not say the same'
  return { ledgerId: signed.ledgerId, size: signed.size, head: signed.head, root: signed.root, jws, note: tree }
}

/** Reads a checkpoint that was kept elsewhere: a ledger line, its record, a compact JWS or a note; a text says what is wrong. */
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
  if (note !== null) {
    if (!note.origin.startsWith(ORIGIN)) return `the note's origin is not ${ORIGIN}<ledgerId>`
    return { ledgerId: note.origin.slice(ORIGIN.length), size: note.size, head: null, root: note.root, jws: null, note }
  }
  const signed = readJws(trimmed)
  if (signed === null) return 'it is neither a checkpoint record, nor a compact JWS, nor a signed note'
  return {
    ledgerId: signed.ledgerId,
    size: signed.size,
    head: signed.head,
    root: signed.root,
    jws: trimmed,
    note: null,
  }
}

/** Every statement of the checkpoint is signed by one of the keys. */
export function isCheckpointSigned(checkpoint: Checkpoint, keys: readonly PublicKey[]): boolean {
  const { jws, note } = checkpoint
  return (jws === null || isJwsSigned(jws, keys)) && (note === null || isSignedBy(note, keys))
}

function isJwsSigned(text: string, keys: readonly PublicKey[]): boolean {
  const jws = parseJws(text)
  if (isFault(jws)) return false
  return keys.some(
    ({ kid, algorithm, key }) =>
      jws.header.kid === kid && jws.header.alg === algorithm.name && algorithm.verify(jws.input, key, jws.signature),
  )
}

function readJws(text: string): CheckpointBody | null {
  const jws = parseJws(text)
  if (isFault(jws) || jws.header.typ !== JWS_TYPE) return null
  const { ledgerId, upTo, head, size, root } = jws.payload
  if (typeof ledgerId !== 'string' || typeof upTo !== 'number' || typeof size !== 'number') return null
  if (typeof head !== 'string' || typeof root !== 'string' || !HASH.test(head) || !HASH.test(root)) return null
  if (!Number.isSafeInteger(upTo) || upTo < 0 || size !== upTo + 1) return null
  return { ledgerId, upTo, head, size, root }
}
