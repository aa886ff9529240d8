import { hash } from 'node:crypto'
import type { PublicKey, Signer } from '@plat/keys'

/**
 * Signed notes of C2SP (`signed-note`, `tlog-checkpoint`): a text of origin, size and root, followed by one line per signature. Readable by
 * witnesses and transparency tools.
 */
export interface SignedNote {
  /** The signed text, including its last LF. */
  readonly text: string
  readonly origin: string
  readonly size: number
  /** 64 hex digits. */
  readonly root: string
  readonly signatures: readonly { readonly name: string; readonly keyId: Buffer; readonly signature: Buffer }[]
}

/** Signature types of the key ids: Ed25519 hashes name and key; ECDSA's id is the hash of its SubjectPublicKeyInfo. */
const TYPE_ED25519 = 0x01
const KEY_ID_BYTES = 4
const SIGNATURE_LINE = /^— ([^ \n+]+) ([A-Za-z0-9+/]+={0,2})$/
const ROOT = /^[A-Za-z0-9+/]{43}=$/

/** Signs size and root (64 hex digits) as a note whose origin is also the key name. */
export async function signNote(signer: Signer, body: { origin: string; size: number; root: string }): Promise<string> {
  const text = `${body.origin}\n${body.size}\n${Buffer.from(body.root, 'hex').toString('base64')}\n`
  const raw = await signer.sign(Buffer.from(text))
  const signature = signer.alg === 'ES256' ? derOf(raw) : Buffer.from(raw)
  const blob = Buffer.concat([keyId(body.origin, signer.publicKey), signature])
  return `${text}\n— ${body.origin} ${blob.toString('base64')}\n`
}

/** Parses a note. Returns null when it is malformed. */
export function readNote(note: string): SignedNote | null {
  const border = note.lastIndexOf('\n\n')
  if (border === -1 || !note.endsWith('\n')) return null
  const text = note.slice(0, border + 1)
  const [origin, size, root] = text.split('\n')
  if (origin === undefined || size === undefined || root === undefined) return null
  if (origin === '' || !/^(0|[1-9]\d{0,15})$/.test(size) || !ROOT.test(root)) return null
  const signatures = note
    .slice(border + 2, -1)
    .split('\n')
    .map(readSignature)
  if (!signatures.every((one) => one !== null)) return null
  return { text, origin, size: Number(size), root: Buffer.from(root, 'base64').toString('hex'), signatures }
}

/** Returns whether a signature of the note verifies under one of the keys, with an accepted name; default: the origin. */
export function isSignedBy(
  note: SignedNote,
  keys: readonly PublicKey[],
  isName: (name: string) => boolean = (name) => name === note.origin,
): boolean {
  const text = Buffer.from(note.text)
  return note.signatures.some(
    ({ name, keyId: id, signature }) =>
      isName(name) && keys.some((key) => id.equals(keyId(name, key)) && verifiesNote(key, text, signature)),
  )
}

/** Returns whether `key` made this signature over `text`, in the encoding of notes. */
export function verifiesNote(key: PublicKey, text: Uint8Array, signature: Buffer): boolean {
  const raw = key.algorithm.name === 'ES256' ? rawOf(signature) : signature
  return raw !== null && key.algorithm.verify(text, key.key, raw)
}

function readSignature(line: string): SignedNote['signatures'][number] | null {
  const [, name, encoded] = SIGNATURE_LINE.exec(line) ?? []
  if (name === undefined || encoded === undefined) return null
  const blob = Buffer.from(encoded, 'base64')
  if (blob.length <= KEY_ID_BYTES || blob.toString('base64') !== encoded) return null
  return { name, keyId: blob.subarray(0, KEY_ID_BYTES), signature: blob.subarray(KEY_ID_BYTES) }
}

function keyId(name: string, { algorithm, key, jwk }: PublicKey): Buffer {
  const input =
    algorithm.name === 'EdDSA'
      ? Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(TYPE_ED25519), Buffer.from(jwk.x ?? '', 'base64url')])
      : key.export({ format: 'der', type: 'spki' })
  return hash('sha256', input, 'buffer').subarray(0, KEY_ID_BYTES)
}

/** Encodes two 32-byte numbers as an ASN.1 sequence: notes carry ECDSA signatures as X.509 does, JWS carries them raw. */
function derOf(raw: Uint8Array): Buffer {
  const numbers = Buffer.concat([derInteger(raw.subarray(0, 32)), derInteger(raw.subarray(32))])
  return Buffer.concat([Buffer.of(0x30, numbers.length), numbers])
}

function derInteger(bytes: Uint8Array): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const digits = bytes.subarray(start)
  const sign = (digits[0] ?? 0) >= 0x80 ? [0] : []
  return Buffer.from([0x02, digits.length + sign.length, ...sign, ...digits])
}

/** Returns the 64 raw bytes of an ASN.1 signature; null unless it is the canonical encoding. */
function rawOf(der: Buffer): Buffer | null {
  const firstLength = der[3] ?? 0
  const secondLength = der[5 + firstLength] ?? 0
  const raw = Buffer.concat([
    fixed(der.subarray(4, 4 + firstLength)),
    fixed(der.subarray(6 + firstLength, 6 + firstLength + secondLength)),
  ])
  return raw.length === 64 && derOf(raw).equals(der) ? raw : null
}

function fixed(number: Buffer): Buffer {
  const digits = number.length > 32 ? number.subarray(number.length - 32) : number
  return Buffer.concat([Buffer.alloc(32 - digits.length), digits])
}
