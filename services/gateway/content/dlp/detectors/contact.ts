import { classOf, isIn, type ScanState } from '../scan/scan-state.ts'
import type { Detector, Finder, Row } from './detector.ts'
import { endAt, isDigit, isEnd, isUndecided } from './shape.ts'
import { entropyOf, WORDS } from './token.ts'

const LOCAL = classOf("A-Za-z0-9.!#$%&'*+/=?^_`{|}~-")
const DOMAIN = classOf('A-Za-z0-9.-')
const MAX_LOCAL_CHARS = 64
const MAX_DOMAIN_CHARS = 160
const DOMAIN_NAME = /^(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24}/

/** An address without quotes or brackets (RFC 5321, section 4.1.2). */
const email: Finder = {
  anchors: ['@'],
  find(look, detector, at) {
    const local = look.runBack(LOCAL, at, MAX_LOCAL_CHARS)
    if (local === at || isIn(LOCAL, look.code(local - 1))) return
    const end = look.run(DOMAIN, at + 1, at + 1 + MAX_DOMAIN_CHARS)
    if (end === look.end && look.isOpen && end - at <= MAX_DOMAIN_CHARS) return look.open(local)
    const domain = DOMAIN_NAME.exec(look.slice(at + 1, end))
    if (domain === null) return
    const last = at + 1 + domain[0].length
    if (!isIn(WORDS, look.code(last))) look.hit(detector, local, last)
  },
  tail(look) {
    const local = look.runBack(LOCAL, look.end, MAX_LOCAL_CHARS)
    if (local < look.end && !isIn(LOCAL, look.code(local - 1))) look.open(local)
  },
}

const BETWEEN = classOf(' ().-')
const MIN_PHONE_DIGITS = 8
const MAX_PHONE_DIGITS = 15
const MAX_PHONE_CHARS = 32

/** A plus sign and up to fifteen digits (E.164), with common separators. */
const phone: Finder = {
  anchors: ['+'],
  find(look, detector, at) {
    if (!look.begins(at) || look.code(at + 1) === 0x30) return
    let digits = 0
    let end = at + 1
    let next = at + 1
    for (; next < look.end && next - at <= MAX_PHONE_CHARS; next++) {
      const code = look.code(next)
      if (isDigit(code)) {
        digits++
        end = next + 1
      } else if (!isIn(BETWEEN, code) || next === at + 1) break
    }
    if (next === look.end && look.isOpen && next - at <= MAX_PHONE_CHARS) return look.open(at)
    if (digits >= MIN_PHONE_DIGITS && digits <= MAX_PHONE_DIGITS && look.ends(end)) look.hit(detector, at, end)
  },
}

const ADDRESS = classOf('0-9.')
const PRIVATE = /^(?:10|172\.(?:1[6-9]|2\d|3[01])|192\.168)(?:\.(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5]))+$/
const MAX_ADDRESS_CHARS = 15

/** An address of a private network (RFC 1918). */
const privateAddress: Finder = {
  digits: [2, 3],
  find(look, detector, at) {
    const end = look.run(ADDRESS, at, at + MAX_ADDRESS_CHARS + 1)
    if (end === look.end && look.isOpen && end - at <= MAX_ADDRESS_CHARS) return look.open(at)
    // Excludes a final period of a sentence.
    const last = look.code(end - 1) === 0x2e ? end - 1 : end
    const text = look.slice(at, last)
    if (text.split('.').length !== 4 || !PRIVATE.test(text)) return
    const ends = endAt(look, last)
    if (isUndecided(ends)) look.open(at)
    else if (isEnd(ends)) look.hit(detector, at, last)
  },
}

/** Characters of random text. */
const RANDOM = classOf('A-Za-z0-9+/_=-')
/** Maximum length: longer runs are files, not keys. */
const MAX_RANDOM_CHARS = 512

/** Long runs of characters with an entropy as in keys. */
export function highEntropy(minLength: number, threshold: number): Finder {
  return {
    sweep(look: ScanState, detector: Detector) {
      for (let at = look.start; at < look.end; at++) {
        if (!isIn(RANDOM, look.code(at))) continue
        const end = look.run(RANDOM, at)
        const isLong = end - at >= minLength && end - at <= MAX_RANDOM_CHARS
        if (end === look.end && look.isOpen && end - at <= MAX_RANDOM_CHARS) look.open(at)
        else if (isLong && entropyOf(look.slice(at, end)) >= threshold) look.hit(detector, at, end)
        at = end
      }
    },
  }
}

const optional = (id: string, finds: string, validated: string, finder: Finder): Row => ({
  id,
  secret: id === 'high_entropy_secret',
  byDefault: false,
  finds,
  validated,
  finder,
})

/** @table Detectors without validation: only active if a profile names them. */
export const contactRows = (entropy: { readonly minLength: number; readonly threshold: number }) => [
  optional('email', 'E-mail addresses', 'form alone', email),
  optional('phone_e164', 'Telephone numbers with a plus sign', 'form alone: 8 to 15 digits', phone),
  optional('ipv4_private', 'IPv4 addresses of private networks', 'the ranges of RFC 1918', privateAddress),
  optional(
    'high_entropy_secret',
    'Texts that look random',
    'at least `entropyMinLength` characters with `entropyThreshold` bits each; 512 at most',
    highEntropy(entropy.minLength, entropy.threshold),
  ),
]
