/** Check digits, as their standards define them. Texts hold digits, and letters where the standard has some. */

const ZERO = 0x30

/** ISO/IEC 7812-1, annex B. */
export function luhn(digits: string): boolean {
  let sum = 0
  for (let at = digits.length - 1, twice = false; at >= 0; at--, twice = !twice) {
    const digit = (digits.charCodeAt(at) - ZERO) * (twice ? 2 : 1)
    sum += digit > 9 ? digit - 9 : digit
  }
  return sum % 10 === 0
}

/** The remainder of a number of any length. */
export function remainder(digits: string, by: number): number {
  let rest = 0
  for (let at = 0; at < digits.length; at++) rest = (rest * 10 + digits.charCodeAt(at) - ZERO) % by
  return rest
}

/** The sum of digits times weights, in order. */
export function weighted(digits: string, weights: readonly number[]): number {
  let sum = 0
  for (let at = 0; at < weights.length; at++) sum += (weights[at] ?? 0) * (digits.charCodeAt(at) - ZERO)
  return sum
}

/** ISO 7064, MOD 97-10 over letters as numbers from 10 on (ISO 13616: the first four characters go to the end). */
export function mod97(text: string): boolean {
  const moved = text.slice(4) + text.slice(0, 4)
  return (
    remainder(
      moved.replace(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55)),
      97,
    ) === 1
  )
}

/** ISO 7064, MOD 11,10: the last digit checks the others. */
export function mod11to10(digits: string): boolean {
  let product = 10
  for (const digit of digits.slice(0, -1)) {
    const sum = (Number(digit) + product) % 10
    product = ((sum === 0 ? 10 : sum) * 2) % 11
  }
  return (11 - product) % 10 === Number(digits.at(-1))
}

/** ISO 7064, MOD 11-2 with X for ten. */
export function mod11to2(text: string): boolean {
  let rest = 0
  for (const digit of text.slice(0, -1)) rest = ((rest + Number(digit)) * 2) % 11
  return '0123456789X'[(12 - rest) % 11] === text.at(-1)
}

const ROTATE = '1576283094'

/** Verhoeff (1969), by the dihedral group of ten elements. */
export function verhoeff(digits: string): boolean {
  let rest = 0
  for (let at = 0; at < digits.length; at++) {
    let digit = Number(digits[digits.length - 1 - at])
    for (let turn = 0; turn < at % 8; turn++) digit = Number(ROTATE[digit])
    rest = dihedral(rest, digit)
  }
  return rest === 0
}

/** Turns and mirrored turns of a pentagon, one after the other. */
function dihedral(one: number, other: number): number {
  if (one < 5) return other < 5 ? (one + other) % 5 : ((one + other) % 5) + 5
  return other < 5 ? ((one - other + 5) % 5) + 5 : (one - other + 5) % 5
}

/** Whether two digits each name a month and a day that exists in some year. */
export function isDate(month: string, day: string): boolean {
  const days = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Number(month) - 1] ?? 0
  return Number(day) >= 1 && Number(day) <= days
}

/** Not one digit alone, as `000000000`. */
export function isVaried(digits: string): boolean {
  const first = digits.charCodeAt(0)
  for (let at = 1; at < digits.length; at++) if (digits.charCodeAt(at) !== first) return true
  return false
}
