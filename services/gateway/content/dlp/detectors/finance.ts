import { isIn, type ScanState } from '../scan/scan-state.ts'
import { isVaried, luhn, mod97, weighted } from './checks.ts'
import { type Detector, personal } from './detector.ts'
import { endAt, isDigit, isEnd, isUndecided, shaped } from './shape.ts'
import { ALNUM } from './token.ts'

const digits = (count: number) => 'd'.repeat(count)
const grouped = (...groups: readonly number[]) => [' ', '-'].map((between) => groups.map(digits).join(between))

/** First digits of the issuers' ranges with the lengths of their numbers. */
const ISSUERS: readonly (readonly [range: RegExp, lengths: readonly number[]])[] = [
  [/^4/, [13, 16, 19]],
  [/^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, [16]],
  [/^3[47]/, [15]],
  [/^(?:6011|64[4-9]|65)/, [16, 19]],
  [/^(?:30[0-5]|3095|3[689])/, [14, 16, 19]],
  [/^35(?:2[89]|[3-8])/, [16, 19]],
  [/^62/, [16, 17, 18, 19]],
  [/^(?:5018|5020|5038|5893|6304|6759|676[1-3])/, [13, 14, 15, 16, 17, 18, 19]],
  [/^220[0-4]/, [16, 19]],
]

function isCard(number: string): boolean {
  if (!luhn(number) || !isVaried(number)) return false
  return ISSUERS.some(([range, lengths]) => lengths.includes(number.length) && range.test(number))
}

/** Lengths of an IBAN by country (SWIFT, IBAN Registry). */
const IBAN_LENGTHS: Readonly<Record<string, number>> = Object.fromEntries(
  `AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27
  GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24
  ME22 MK19 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23
  ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30`
    .split(/\s+/)
    .map((row) => [row.slice(0, 2), Number(row.slice(2))]),
)

const SPACE = 0x20

/** Finds an IBAN without spaces or in groups of four. */
function findIban(look: ScanState, detector: Detector, at: number): void {
  const length = IBAN_LENGTHS[look.slice(at, at + 2)]
  if (length === undefined) return
  const isGrouped = look.code(at + 4) === SPACE
  let text = ''
  let next = at
  while (text.length < length) {
    const code = look.code(next)
    if (code === -1) {
      look.ifOpen(at)
      return
    }
    const isBreak = isGrouped && code === SPACE && text.length % 4 === 0 && look.code(next - 1) !== SPACE
    if (!isBreak && (!isIn(ALNUM, code) || code > 0x5a)) return
    if (!isBreak) text += String.fromCharCode(code)
    next++
  }
  const end = endAt(look, next)
  if (isUndecided(end)) look.open(at)
  else if (isEnd(end) && isDigit(text.charCodeAt(2)) && isDigit(text.charCodeAt(3)) && mod97(text))
    look.hit(detector, at, end)
}

/** Social security numbers printed as specimens. */
const SPECIMENS: ReadonlySet<string> = new Set(['078051120', '219099999', '457555462'])

function isSsn(number: string): boolean {
  const isIssued = /^(?!000|666|9)\d{3}(?!00)\d{2}(?!0000)\d{4}$/.test(number)
  return isIssued && isVaried(number) && !SPECIMENS.has(number) && number !== '123456789'
}

/** @table Payment and the numbers of the United States. */
export const financeRows = [
  personal(
    'credit_card',
    'Payment cards: Visa, Mastercard, American Express, Discover, Diners Club, JCB, UnionPay, Maestro, Mir',
    "Luhn's check digit, the issuer's range with its lengths; in one piece or grouped as on cards",
    shaped({
      shapes: [
        ...[13, 14, 15, 16, 17, 18, 19].map(digits),
        ...grouped(4, 4, 4, 4, 3),
        ...grouped(4, 4, 4, 4),
        ...grouped(4, 6, 5),
        ...grouped(4, 6, 4),
      ],
      is: isCard,
    }),
  ),
  personal(
    'iban',
    'International bank account numbers',
    'ISO 13616: the check digits modulo 97, the length of its country',
    {
      letters: [2],
      find: findIban,
    },
  ),
  personal(
    'us_ssn',
    'US social security numbers, written with hyphens',
    'areas, groups and serials that are issued; published specimens are none',
    shaped({ shapes: ['ddd-dd-dddd'], is: isSsn }),
  ),
  personal(
    'us_itin',
    'US taxpayer identification numbers, written with hyphens',
    'begins with 9, and a group of the ranges that are issued',
    shaped({
      shapes: ['ddd-dd-dddd'],
      is: (number) => /^9\d{2}(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])\d{4}$/.test(number) && isVaried(number),
    }),
  ),
  personal(
    'us_aba_routing',
    'US bank routing numbers',
    'check digit (weights 3, 7, 1) and ranges, with a word such as `routing` before',
    shaped({
      shapes: [digits(9)],
      near: /routing|\baba\b|\brtn\b/i,
      is: (number) =>
        /^(?:0\d|1[0-2]|2[1-9]|3[0-2]|6[1-9]|7[0-2]|80)/.test(number) &&
        isVaried(number) &&
        weighted(number, [3, 7, 1, 3, 7, 1, 3, 7, 1]) % 10 === 0,
    }),
  ),
  personal(
    'us_npi',
    'US national provider identifiers',
    "Luhn's check digit over 80840 and the number, with a word such as `NPI` before",
    shaped({
      shapes: [digits(10)],
      near: /\bnpi\b|provider/i,
      is: (number) => /^[12]/.test(number) && luhn(`80840${number}`),
    }),
  ),
] as const
