import type { Families } from './cost.ts'

/** Numbers from 0 on as short names, until they have `n` characters together. */
function many(n: number, each: (at: number) => string): readonly string[] {
  const parts: string[] = []
  for (let at = 0, length = 0; length < n; at++) {
    const part = each(at)
    parts.push(part)
    length += part.length + 1
  }
  return parts
}

/** Hostile JSON texts. */
export const json: Families = {
  digits: (n) => `[${`${'1'.repeat(4000)},`.repeat(n / 4001)}1]`,
  'one long literal': (n) => `1.${'0'.repeat(n)}1`,
  zeros: (n) => `[${`1.${'0'.repeat(4000)}1,`.repeat(n / 4004)}1]`,
  'small numbers': (n) => `[${'1,'.repeat(n / 2)}1]`,
  escapes: (n) => `"${'\\u0061'.repeat(n / 6)}"`,
  backslashes: (n) => `"${'\\\\'.repeat(n / 2)}"`,
  wide: (n) => `"${'é\u{1f600}'.repeat(n / 3)}"`,
  nesting: (n) => '['.repeat(n),
  'deep values': (n) => `[${`${'['.repeat(60)}1${']'.repeat(60)},`.repeat(n / 122)}1]`,
  members: (n) => `{${many(n, (at) => `"m${at}":${at}`).join(',')}}`,
  'members in many objects': (n) => `[${many(n, (at) => `{"a${at}":1}`).join(',')}]`,
  'the same members': (n) => `[${'{"a":1,"b":""},'.repeat(n / 15)}1]`,
  'escaped names': (n) => `{${many(n, (at) => `"\\u0061${at}":1`).join(',')}}`,
  'escaped names in many objects': (n) => `[${'{"\\u0061":1},'.repeat(n / 13)}1]`,
  'backslashes in names': (n) => `[${many(n, (at) => `{"\\\\${at}":1}`).join(',')}]`,
  'long names': (n) => `{"${'a'.repeat(n / 2)}":1,"${'a'.repeat(n / 2)}b":1}`,
  'empty values': (n) => `[${'[],{},'.repeat(n / 6)}1]`,
  strings: (n) => `[${many(n, (at) => `"${at.toString(36)}"`).join(',')}]`,
  base64: (n) => `"${'QUJD'.repeat(n / 4)}"`,
}

/** Hostile texts of no particular form. */
export const text: Families = {
  digits: (n) => '1'.repeat(n),
  zeros: (n) => `${'0'.repeat(n)}1`,
  prefixes: (n) => 'ab'.repeat(n / 2),
  pairs: (n) => '1h'.repeat(n / 2),
  spaces: (n) => `a${' '.repeat(n)}a`,
  'line breaks': (n) => '\n'.repeat(n),
  words: (n) => many(n, (at) => at.toString(36)).join(' '),
  wide: (n) => 'é\u{1f600}'.repeat(n / 3),
  base64: (n) => 'QUJD'.repeat(n / 4),
  slashes: (n) => `spiffe://${'a/'.repeat(n / 2)}`,
  separators: (n) => 'a,;=&:.-'.repeat(n / 8),
  markup: (n) => '<a b="'.repeat(n / 6),
}

/** A length in as few bytes as DER allows. */
export function lengthOf(length: number): string {
  const bytes: number[] = []
  for (let left = length; left > 0; left >>>= 8) bytes.unshift(left & 255)
  return Buffer.from(length < 128 ? [length] : [128 | bytes.length, ...bytes]).toString('latin1')
}

/** Hostile bytes, one a character of Latin-1. */
export const binary: Families = {
  zeros: (n) => '\0'.repeat(n),
  ones: (n) => '\xff'.repeat(n),
  nested: (n) => '0\x80'.repeat(n / 2),
  'long lengths': (n) => '0\x84\x7f\xff\xff\xff'.repeat(n / 6),
  'small values': (n) => `0${lengthOf(n & ~1)}${'\x05\0'.repeat(n / 2)}`,
}
