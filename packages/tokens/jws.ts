import { decodeBase64url, encodeBase64url, parseStrict } from '@plat/core'
import type { LocalSigner, Signer } from '@plat/keys'
import { fault, type TokenFault } from './fault.ts'

/** Longest token in characters. Node takes 16 KiB of headers in all, so a longer one could not be presented. */
export const MAX_TOKEN_CHARS = 12 * 1024

/** Nesting of a token's JSON: the `act` chain and `plat_substrate` need far less. */
const MAX_TOKEN_DEPTH = 40

/** A compact JWS (RFC 7515) that is well formed. Nothing in it is trusted before its signature was checked. */
export interface Jws {
  readonly header: {
    readonly alg: string
    readonly kid: string | null
    /** Lower case, without `application/`; null when absent. */
    readonly typ: string | null
    readonly members: Readonly<Record<string, unknown>>
  }
  readonly payload: Readonly<Record<string, unknown>>
  /** The bytes that are signed. */
  readonly input: Uint8Array
  readonly signature: Uint8Array
}

/** A compact JWS whose payload has not been looked at: it may be anything. */
export interface CompactJws extends Omit<Jws, 'payload'> {
  readonly payload: Uint8Array
}

/**
 * Reads a token strictly: a compact JWS with a JSON object in it, UTF-8 and without duplicate members. So one signed
 * content has exactly one text, and its hash may be a cache key.
 */
export function parseJws(text: string): Jws | TokenFault {
  const jws = parseCompact(text)
  if ('kind' in jws) return jws
  const payload = parseObject(jws.payload)
  return payload === null ? notCanonical : { ...jws, payload }
}

/** Headers that were read, by their segment: those of one key's tokens are all alike. */
const knownHeaders = new Map<string, Jws['header']>()
/** So many are kept, then all are forgotten. */
const MAX_KNOWN_HEADERS = 64
/** Longest segment that is kept: a longer one carries a key, as proofs of possession do, and is hardly met again. */
const MAX_KNOWN_CHARS = 160

/** Reads a compact JWS strictly: exactly three segments of canonical base64url (no padding, no white space, no unused bits). */
export function parseCompact(text: string): CompactJws | TokenFault {
  if (text.length > MAX_TOKEN_CHARS) return fault('malformed', 'token is too long')
  const segments = text.split('.', 4)
  const [head, body, tail] = segments
  if (segments.length !== 3 || head === undefined || body === undefined || tail === undefined) {
    return fault('malformed', 'token is not three segments')
  }
  const header = knownHeaders.get(head) ?? readHeader(head)
  if ('kind' in header) return header
  const payload = decodeBase64url(body)
  const signature = decodeBase64url(tail)
  if (payload === null || signature === null) return notCanonical
  return {
    header,
    payload,
    input: Buffer.from(text.slice(0, head.length + 1 + body.length), 'latin1'),
    signature,
  }
}

const notCanonical = fault('malformed', 'token segments are not canonical base64url of JSON objects')

function readHeader(segment: string): Jws['header'] | TokenFault {
  const bytes = decodeBase64url(segment)
  const members = bytes === null ? null : parseObject(bytes)
  if (members === null) return notCanonical
  const { alg, kid = null, typ = null } = members
  if (typeof alg !== 'string') return fault('malformed', 'token header has no "alg"')
  if (kid !== null && typeof kid !== 'string') return fault('malformed', 'token header "kid" is not a string')
  if (typ !== null && typeof typ !== 'string') return fault('malformed', 'token header "typ" is not a string')
  // RFC 7515 section 4.1.11: what is critical must be understood, and nothing here is.
  if ('crit' in members || 'b64' in members) return fault('malformed', 'token header has critical members')
  const header = { alg, kid, typ: typ === null ? null : mediaType(typ), members }
  if (segment.length <= MAX_KNOWN_CHARS) {
    if (knownHeaders.size === MAX_KNOWN_HEADERS) knownHeaders.clear()
    knownHeaders.set(segment, header)
  }
  return header
}

/** RFC 7515 section 4.1.9: media types compare without case, and `application/` may be left out. */
function mediaType(typ: string): string {
  return typ.toLowerCase().replace(/^application\//, '')
}

function parseObject(bytes: Uint8Array): Readonly<Record<string, unknown>> | null {
  try {
    const value = parseStrict(bytes, { maxDepth: MAX_TOKEN_DEPTH })
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

/** A JSON object: not null, not an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Signs claims as a compact JWS. `alg` and `kid` of the header come from the signer. */
export function signJws(signer: LocalSigner, header: object, claims: object): string
export function signJws(signer: Signer, header: object, claims: object): string | Promise<string>
export function signJws(signer: Signer, header: object, claims: object): string | Promise<string> {
  const input = segments(encodedHeader(signer, header), encodeText(JSON.stringify(claims)))
  const signature = signer.sign(Buffer.from(input, 'latin1'))
  if (signature instanceof Uint8Array) return segments(input, encodeBase64url(signature))
  return signature.then((bytes) => segments(input, encodeBase64url(bytes)))
}

/** In one piece, unlike what `+` makes: `JSON.stringify` of an answer with a text in pieces takes twice as long. */
function segments(...texts: readonly string[]): string {
  return texts.join('.')
}

/** Headers that hold nothing but what the signer says. */
const plainHeaders = new WeakMap<Signer, string>()

function encodedHeader(signer: Signer, header: object): string {
  const isPlain = Object.keys(header).length === 0
  const known = isPlain ? plainHeaders.get(signer) : undefined
  if (known !== undefined) return known
  const encoded = encodeText(JSON.stringify({ alg: signer.alg, kid: signer.kid, ...header }))
  if (isPlain) plainHeaders.set(signer, encoded)
  return encoded
}

function encodeText(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url')
}
