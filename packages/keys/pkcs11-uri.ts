/** A PKCS#11 URI (RFC 7512) of a key. All members are decoded; an absent attribute is null. */
export interface Pkcs11Uri {
  readonly token: string | null
  readonly serial: string | null
  readonly object: string | null
  /** Hexadecimal. */
  readonly id: string | null
  readonly modulePath: string | null
  /** Path of the file that holds the PIN. */
  readonly pinFile: string | null
}

/** Attributes of the path (RFC 7512, section 2.3) that select a token or a key and are supported. */
const PATH = new Set(['token', 'serial', 'object', 'id'])
const QUERY = new Set(['module-path', 'pin-source'])
const SHAPE = 'pkcs11:token=<label>;object=<label>;id=%01?module-path=<file>&pin-source=file:/<file>'

/** Parses a URI of a key. Throws one line without the value of a PIN. */
export function readPkcs11Uri(uri: string): Pkcs11Uri {
  const [path = '', query = '', more] = uri.slice('pkcs11:'.length).split('?')
  if (/(?:^pkcs11:|[?&;])pin-value=/.test(uri)) {
    throw new Error('pkcs11 key URI: pin-value would be a secret in the configuration; use pin-source=file:/<file>')
  }
  const problem = (why: string) => new Error(`key URI ${uri}: ${why}`)
  if (more !== undefined) throw problem(`has a second "?"; write ${SHAPE}`)
  const inPath = attributes(path, ';', PATH, problem)
  const inQuery = attributes(query, '&', QUERY, problem)
  const [id, object] = [inPath.get('id'), inPath.get('object')]
  if (id === undefined && object === undefined) throw problem(`names no key: object or id is required; write ${SHAPE}`)
  for (const [name, value] of [...inPath, ...inQuery]) {
    if (name !== 'id' && !isText(value)) throw problem(`${name} must be printable UTF-8 text of 1 to 255 bytes`)
  }
  const text = (name: string) => inPath.get(name)?.toString('utf8') ?? null
  const pinSource =
    inQuery
      .get('pin-source')
      ?.toString('utf8')
      .replace(/^file:(?:\/\/(?=\/))?/, '') ?? null
  if (pinSource !== null && !pinSource.startsWith('/')) throw problem('pin-source must be file:/<absolute path>')
  return {
    token: text('token'),
    serial: text('serial'),
    object: text('object'),
    id: id === undefined ? null : id.toString('hex'),
    modulePath: inQuery.get('module-path')?.toString('utf8') ?? null,
    pinFile: pinSource,
  }
}

function attributes(
  text: string,
  separator: string,
  known: ReadonlySet<string>,
  problem: (why: string) => Error,
): ReadonlyMap<string, Buffer> {
  const found = new Map<string, Buffer>()
  for (const part of text.split(separator)) {
    if (part === '') continue
    const [, name = '', value = ''] = /^([a-z-]+)=(.*)$/.exec(part) ?? []
    if (!known.has(name)) throw problem(`attribute "${name || part}" is not supported`)
    if (found.has(name)) throw problem(`${name} is given twice`)
    found.set(name, decoded(value, name, problem))
  }
  return found
}

/** Percent-decoding to bytes: an `id` is binary. */
function decoded(value: string, name: string, problem: (why: string) => Error): Buffer {
  if (/%(?![0-9a-fA-F]{2})/.test(value) || !/^[\x21-\x7e]+$/.test(value)) {
    throw problem(`${name} is not percent-encoded; write %20 for a space`)
  }
  return Buffer.from(
    value.replace(/%([0-9a-fA-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}

const MAX_TEXT_BYTES = 255

function isText(value: Buffer): boolean {
  const text = value.toString('utf8')
  if (value.length === 0 || value.length > MAX_TEXT_BYTES || !Buffer.from(text, 'utf8').equals(value)) return false
  return !/\p{Cc}/u.test(text)
}
