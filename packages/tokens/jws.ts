import { decodeBase64url, encodeBase64url, isObject, parseStrict } from '@plat/core'
import type { LocalSigner, Signer } from '@plat/keys'
import { fault, type TokenFault } from './fault.ts'

/** Maximum token length in characters. Node limits all headers to 16 KiB, so a longer one could not be presented. */
export const MAX_TOKEN_CHARS = 12 * 1024

/** Maximum nesting of a token's JSON: the `act` chain and `plat_substrate` need far less. */
const MAX_TOKEN_DEPTH = 40

/** A well-formed compact JWS (RFC 7515). Untrusted until its signature is verified. */
export interface Jws {
  readonly header: {
    readonly alg: string
    readonly kid: string | null
    /** Lower case, without `application/`; null when absent. */
    readonly typ: string | null
    readonly members: Readonly<Record<string, unknown>>
  }
  readonly payload: Readonly<Record<string, unknown>>
  /** The signed bytes. */
  readonly input: Uint8Array
  readonly signature: Uint8Array
}

/** A compact JWS whose payload is not parsed: it may be anything. */
export interface CompactJws extends Omit<Jws, 'payload'> {
  readonly payload: Uint8Array
}

/**
 * Parses a token strictly: a compact JWS with a JSON object, in UTF-8 and without duplicate members. So each signed content has exactly one text,
 * and its hash can be a cache key.
 */
export function parseJws(text: string): Jws | TokenFault {
  const jws = parseCompact(text)
  if ('kind' in jws) return jws
  const payload = parseObject(jws.payload)
  return payload === null ? notCanonical : { ...jws, payload }
}

/** Cache of parsed headers by segment: the tokens of one key have equal headers. */
const knownHeaders = new Map<string, Jws['header']>()
/** Maximum number of cached headers; then all are dropped. */
const MAX_KNOWN_HEADERS = 64
/** Maximum length of a cached segment: a longer one contains a key, as in DPoP proofs, and rarely repeats. */
const MAX_KNOWN_CHARS = 160

/** Parses a compact JWS strictly: exactly three segments of canonical base64url (no padding, white space or unused bits). */
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
  // RFC 7515 section 4.1.11: a critical extension must be understood, and none is supported.
  if ('crit' in members || 'b64' in members) return fault('malformed', 'token header has critical members')
  const header = { alg, kid, typ: typ === null ? null : mediaType(typ), members }
  if (segment.length <= MAX_KNOWN_CHARS) {
    if (knownHeaders.size === MAX_KNOWN_HEADERS) knownHeaders.clear()
    knownHeaders.set(segment, header)
  }
  return header
}

/** RFC 7515 section 4.1.9: media types are case-insensitive, and `application/` is optional. */
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

/** Signs claims as a compact JWS. `alg` and `kid` of the header come from the signer. `caller` is for the shares of a key service's queue. */
export function signJws(signer: LocalSigner, header: object, claims: object, caller?: string): string
export function signJws(signer: Signer, header: object, claims: object, caller?: string): string | Promise<string>
export function signJws(signer: Signer, header: object, claims: object, caller?: string): string | Promise<string> {
  const input = segments(encodedHeader(signer, header), encodeText(JSON.stringify(claims)))
  const signature = signer.sign(Buffer.from(input, 'latin1'), caller)
  if (signature instanceof Uint8Array) return segments(input, encodeBase64url(signature))
  return signature.then((bytes) => segments(input, encodeBase64url(bytes)))
}

/** A flat string, unlike the result of `+`: `JSON.stringify` takes twice as long for a composed string. */
function segments(...texts: readonly string[]): string {
  return texts.join('.')
}

/** Headers that contain only the members of the signer. */
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
