/** Replacement of a secret in a log line. */
const REMOVED = '[removed]'

/** Deeper members of a field are dropped, to bound the size of a line. */
const MAX_DEPTH = 6

/** Maximum length of a string in a log line, in UTF-16 units. */
const MAX_TEXT = 8192

/** Member names, lower case without `-` and `_`, whose values never reach a log. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'bearer',
  'dpop',
  'proof',
  'assertion',
  'clientassertion',
  'passphrase',
  'privatekey',
  'credential',
  'credentials',
  'arguments',
])
const SECRET_ENDINGS = ['token', 'tokens', 'secret', 'secrets', 'password', 'apikey']

/**
 * Three base64url parts of which the first begins a JSON object, and credentials of the HTTP schemes. A run of base64url is searched from its start
 * only: searching from each `eyJ` in it would be quadratic.
 */
const TOKEN_IN_TEXT =
  /(?<![\w-])((?:(?!eyJ)[\w-])*)eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|\b(Bearer|DPoP|Basic) +[\w.~+/=-]{8,}/g

/** Required by every match of `TOKEN_IN_TEXT`: a cheap test that almost all text fails. */
const TOKEN_SIGN = /eyJ|Bearer |DPoP |Basic /

/** Cache of checked field names. Names come from the program; nested ones may come from a caller, hence the cap. */
const checkedNames = new Map<string, boolean>()
const MAX_JUDGED_NAMES = 1024

function isSecretName(name: string): boolean {
  const known = checkedNames.get(name)
  if (known !== undefined) return known
  const plain = name.toLowerCase().replaceAll(/[-_]/g, '')
  const secret = SECRET_NAMES.has(plain) || SECRET_ENDINGS.some((ending) => plain.endsWith(ending))
  if (checkedNames.size < MAX_JUDGED_NAMES) checkedNames.set(name, secret)
  return secret
}

/**
 * Returns a copy without secrets: members named like a credential, and text that looks like a token. Numbers under such names stay (counts of tokens
 * are not secret); errors become `{name, message, stack}` with their cause.
 */
export function withoutSecrets(text: string): string
export function withoutSecrets(fields: object): object
export function withoutSecrets(value: string | object): string | object {
  if (typeof value === 'string') return cleanText(value)
  return isClean(value) ? value : cleanObject(value, 0)
}

/** Returns whether the fields of a line are plain values with nothing to remove, as usual: then they need no copy. */
function isClean(fields: object): boolean {
  if (fields instanceof Error || Array.isArray(fields)) return false
  for (const name in fields) {
    const member: unknown = Reflect.get(fields, name)
    const plain = Array.isArray(member) ? member.every(isPlain) : isPlain(member)
    if (!plain || isSecretName(name)) return false
  }
  return true
}

function isPlain(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= MAX_TEXT && !TOKEN_SIGN.test(value)
  return typeof value === 'number' || typeof value === 'boolean' || value === undefined || value === null
}

function cleanText(text: string): string {
  const cut = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text
  if (!TOKEN_SIGN.test(cut)) return cut
  return cut.replaceAll(TOKEN_IN_TEXT, (_all, before: string | undefined, scheme: string | undefined) =>
    scheme === undefined ? `${before}${REMOVED}` : `${scheme} ${REMOVED}`,
  )
}

function cleanObject(value: object, depth: number): object {
  if (depth > MAX_DEPTH) return {}
  if (Array.isArray(value)) return value.map((item) => clean(item, depth + 1))
  const cleaned: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value instanceof Error ? parts(value) : value)) {
    const secret = isSecretName(name) && (typeof member === 'string' || typeof member === 'object')
    cleaned[name] = secret && member !== null ? REMOVED : clean(member, depth + 1)
  }
  return cleaned
}

function clean(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return ArrayBuffer.isView(value) ? `${value.byteLength} bytes` : cleanObject(value, depth)
}

function parts(error: Error): object {
  const { name, message, stack, cause } = error
  return cause === undefined ? { ...error, name, message, stack } : { ...error, name, message, stack, cause }
}
