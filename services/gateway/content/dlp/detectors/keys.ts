import { classOf, isIn, type ScanState } from '../scan/scan-state.ts'
import { type Detector, type Finder, secret } from './detector.ts'
import { ALNUM, BASE64, begins, entropyOf, looksRandom, URLSAFE, WORDS } from './token.ts'

/** Characters in the body of a key: headers, base64, and line ends, literal or escaped as JSON. */
const PEM_BODY = classOf('A-Za-z0-9+/= \t\r\n:,.\\_-')
const PEM_BEGIN = '-----BEGIN '
const PEM_LABEL = /^-----BEGIN ((?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?)-----/
/** Maximum length of the first line, including dashes. */
const MAX_LABEL_CHARS = 80
/** Minimum base64 text in one line of a key. */
const KEY_TEXT = /[A-Za-z0-9+/=]{32}/
/** Maximum offset of the base64 text, after headers. */
const KEY_TEXT_WITHIN = 512
const DASHES = '-----'
const HYPHEN = 0x2d
/** JSON member before the key in a service account file. */
const SERVICE_ACCOUNT = /private_key\\*"\s*:\s*\\*"?$/

/** A private key in PEM, up to its last line; without one, as far as its characters go. */
function pem(isMeant: (before: string) => boolean): Finder {
  return {
    anchors: [PEM_BEGIN],
    find(look, detector, at) {
      const first = look.slice(at, Math.min(look.end, at + MAX_LABEL_CHARS))
      const label = PEM_LABEL.exec(first)
      if (label === null) {
        if (look.isOpen && at + MAX_LABEL_CHARS > look.end && /^-----BEGIN [A-Z0-9 ]*-{0,4}$/.test(first)) look.open(at)
        return
      }
      if (!isMeant(look.before(at))) return
      findPemEnd(look, detector, { at, body: at + label[0].length, label: label[1] ?? '' })
    },
  }
}

function findPemEnd(
  look: ScanState,
  detector: Detector,
  { at, body, label }: { at: number; body: number; label: string },
): void {
  const stop = pemStop(look, body)
  const text = KEY_TEXT.exec(look.slice(body, Math.min(stop, body + KEY_TEXT_WITHIN)))
  const last = `${DASHES}END ${label}${DASHES}`
  const closing = look.slice(stop, Math.min(look.end, stop + last.length))
  const isUndecided = look.isOpen && stop + closing.length === look.end && last.startsWith(closing)
  if (text === null) {
    if (isUndecided && stop < body + KEY_TEXT_WITHIN) look.open(at)
  } else if (isUndecided && closing !== last) look.openHit(detector, at, body + text.index + text[0].length)
  else look.hit(detector, at, closing === last ? stop + last.length : stop)
}

/** End of a key's text: five dashes, or another character. */
function pemStop(look: ScanState, body: number): number {
  let next = look.run(PEM_BODY, body)
  const dashes = look.text.indexOf(DASHES, body)
  if (dashes !== -1 && dashes < next) next = dashes
  // Part of the five dashes may be missing yet.
  else if (next === look.end) while (next > body && look.code(next - 1) === HYPHEN) next--
  return next
}

const POINT = 0x2e
const JWT_TAIL = classOf('A-Za-z0-9_.-')
/** Maximum length of a decoded token header. */
const MAX_JWT_HEADER_CHARS = 2048
const LEAST_JWT_PAYLOAD_CHARS = 8

/** A signed or encrypted token in compact form (RFC 7515, RFC 7516). */
const jwt: Finder = {
  anchors: ['eyJ'],
  find(look, detector, at) {
    if (!look.begins(at) || isWithin(look, at)) return
    const dot = look.run(URLSAFE, at, at + MAX_JWT_HEADER_CHARS + 1)
    if (dot - at > MAX_JWT_HEADER_CHARS) return
    if (dot === look.end) return look.ifOpen(at)
    if (look.code(dot) !== POINT || !isHeader(look.slice(at, dot))) return
    const enough = dot + 1 + LEAST_JWT_PAYLOAD_CHARS
    const payload = look.run(URLSAFE, dot + 1, enough)
    if (payload < enough) return payload === look.end ? look.ifOpen(at) : undefined
    const end = look.run(JWT_TAIL, enough)
    if (end === look.end && look.isOpen) return look.openHit(detector, at, enough)
    look.hit(detector, at, withoutPoints(look, end))
  },
}

/** After a hyphen, near another start: that one was checked already. */
function isWithin(look: ScanState, at: number): boolean {
  return look.code(at - 1) === HYPHEN && look.slice(look.runBack(URLSAFE, at, 64), at).includes('eyJ')
}

/** Excludes a final period of a sentence. */
function withoutPoints(look: ScanState, end: number): number {
  let last = end
  while (look.code(last - 1) === POINT) last--
  return last
}

function isHeader(text: string): boolean {
  try {
    const header: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    return typeof header === 'object' && header !== null && 'alg' in header && typeof header.alg === 'string'
  } catch {
    return false
  }
}

const USER = classOf("A-Za-z0-9._~%!$&'()*+,;=-")
const COLON = 0x3a
const AT = 0x40
const MAX_USER_CHARS = 64
const MAX_PASSWORD_CHARS = 128

/** User and password in a URL (RFC 3986, section 3.2.1). */
const urlCredentials: Finder = {
  anchors: ['://'],
  find(look, detector, at, length) {
    const user = at + length
    if (!isIn(ALNUM, look.code(at - 1))) return
    const colon = look.run(USER, user, user + MAX_USER_CHARS + 1)
    if (colon - user > MAX_USER_CHARS) return
    if (look.code(colon) !== COLON) return colon === look.end ? look.ifOpen(user) : undefined
    const end = look.run(USER, colon + 1, colon + 2 + MAX_PASSWORD_CHARS)
    if (end - colon - 1 > MAX_PASSWORD_CHARS) return
    if (end === look.end && look.isOpen) return look.open(user)
    if (look.code(end) === AT && end > colon + 1) look.hit(detector, user, end)
  },
}

const MOST_HEADER_CHARS = 255

/** Credentials after the scheme of an `Authorization` header. */
function credentials(schemes: readonly string[], least: number, is: (text: string) => boolean): Finder {
  const of = classOf('A-Za-z0-9+/=._~-')
  return {
    anchors: schemes,
    find(look, detector, at, length) {
      const body = at + length
      if (!begins(look, at)) return
      const end = look.run(of, body, body + MOST_HEADER_CHARS + 1)
      if (end - body > MOST_HEADER_CHARS) return
      if (end === look.end && look.isOpen) return look.open(body)
      if (end - body >= least && is(look.slice(body, end))) look.hit(detector, body, end)
    },
  }
}

/** A user, a colon and a password (RFC 7617). */
function isBasic(text: string): boolean {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return false
  return /^[\x20-\x39\x3b-\x7e]+:[\x20-\x7e]+$/.test(Buffer.from(text, 'base64').toString('latin1'))
}

/** Entropy above that of words, in bits per character. */
const OPAQUE_BITS = 3.5
const isOpaque = (text: string) => /\d/.test(text) && entropyOf(text) >= OPAQUE_BITS

const AWS_SECRET_CHARS = 40
const AWS_NAMES = ['secret', 'Secret', 'SECRET'].flatMap((word) =>
  ['_access_key', '_ACCESS_KEY', 'AccessKey', ' access key', '-access-key'].map((rest) => word + rest),
)
const AWS_BETWEEN = classOf(' \t"\'=:>\\')
const AWS_MEMBER = /secret[_-]?access[_-]?key\\*"\s*:\s*\\*"?$/i
const MOST_BETWEEN = 8

/** Forty characters without a specific form: their name must precede them. */
const awsSecret: Finder = {
  anchors: AWS_NAMES,
  find(look, detector, at, length) {
    const body = look.run(AWS_BETWEEN, at + length, at + length + MOST_BETWEEN)
    findAwsSecret(look, detector, body)
  },
  sweep(look, detector) {
    // Value of a JSON member with the name.
    const isOne = look.end - look.start === AWS_SECRET_CHARS && !look.isOpen
    if (isOne && AWS_MEMBER.test(look.before(look.start))) findAwsSecret(look, detector, look.start)
  },
}

function findAwsSecret(look: ScanState, detector: Detector, body: number): void {
  const end = look.run(BASE64, body, body + AWS_SECRET_CHARS + 1)
  if (end - body > AWS_SECRET_CHARS) return
  if (end === look.end && look.isOpen) look.open(body)
  else if (end - body === AWS_SECRET_CHARS && looksRandom(look.slice(body, end))) look.hit(detector, body, end)
}

const AZURE_CLIENT = classOf('A-Za-z0-9_~.-')

/** Three characters, a digit, `Q~` and 31 to 34 more: the hit begins at the digit, where an anchor can match. */
const azureClientSecret: Finder = {
  anchors: [...'0123456789'].map((digit) => `${digit}Q~`),
  isInWords: true,
  find(look, detector, at, length) {
    if (look.runBack(AZURE_CLIENT, at, 3) !== at - 3) return
    const body = at + length
    const end = look.run(AZURE_CLIENT, body, body + 35)
    if (end - body > 34) return
    if (end === look.end && look.isOpen) return look.open(at)
    if (end - body >= 31 && looksRandom(look.slice(body, end))) look.hit(detector, at, end)
  },
}

const TELEGRAM_KEY_CHARS = 35

/** Eight to ten digits, a colon and 35 characters that begin with AA. */
const telegram: Finder = {
  digits: [8, 9, 10],
  find(look, detector, at) {
    const colon = look.run(WORDS, at, at + 10)
    if (colon === look.end && look.isOpen) return look.open(at)
    if (look.code(colon) !== COLON) return
    const end = look.run(URLSAFE, colon + 1, colon + 2 + TELEGRAM_KEY_CHARS)
    const isKey = look.slice(colon + 1, Math.min(end, colon + 3)) === 'AA'.slice(0, end - colon - 1)
    if (!isKey || end - colon - 1 > TELEGRAM_KEY_CHARS) return
    if (end === look.end && look.isOpen) return look.open(at)
    if (end - colon - 1 === TELEGRAM_KEY_CHARS) look.hit(detector, at, end)
  },
}

/** @table Keys and credentials beyond a prefix. Of two on the same text, the first row counts. */
export const keyRows = [
  secret(
    'gcp_service_account_key',
    'Private keys of Google Cloud service accounts',
    'a private key as the member `private_key`',
    pem((before) => SERVICE_ACCOUNT.test(before)),
  ),
  secret(
    'private_key',
    'Private keys in PEM: PKCS 8, RSA, EC, DSA, OpenSSH, PGP',
    'first line, and a line of key text',
    pem(() => true),
  ),
  secret(
    'jwt',
    'JSON web tokens, signed or encrypted',
    'the header decodes to JSON with `alg`, and a payload follows',
    jwt,
  ),
  secret('url_credentials', 'User and password in a URL', 'both stand between `://` and `@`', urlCredentials),
  secret(
    'basic_auth_header',
    'Credentials of HTTP Basic',
    'decodes to a user and a password',
    credentials(['Basic ', 'basic '], 8, isBasic),
  ),
  secret(
    'bearer_header',
    'Credentials of HTTP Bearer',
    'opaque text of 20 characters or more, with digits',
    credentials(['Bearer ', 'bearer ', 'DPoP '], 20, isOpaque),
  ),
  secret('aws_secret_access_key', 'AWS secret access keys', '40 characters behind their name', awsSecret),
  secret(
    'azure_client_secret',
    'Client secrets of Microsoft Entra applications',
    '`Q~` behind a digit in its place, length',
    azureClientSecret,
  ),
  secret('telegram_bot_token', 'Bot tokens of Telegram', "a bot's number, then 35 characters from `AA` on", telegram),
] as const
