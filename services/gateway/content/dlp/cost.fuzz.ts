import { runAtOnce } from '@plat/core'
import { costTarget, type Row } from '../../../../test/fuzz/cost.ts'
import { json, text } from '../../../../test/fuzz/families.ts'
import { findInJson } from './json/strings.ts'
import { compileProfile } from './profile.ts'
import { Redaction } from './redaction.ts'
import { TextStream } from './stream.ts'
import { DEFAULTS } from './testing/profiles.ts'

const KIB = 1024
const MIB = 1024 * KIB

const profile = compileProfile('cost', DEFAULTS)
const custom = compileProfile('custom', {
  ...DEFAULTS,
  custom: [{ id: 'x', regex: '(?:[a-z0-9]+[.@-])+[a-z]{2,8}x|123456789012', secret: false }],
})
const { response: customResponse } = custom
const scanner = profile.response?.scanner
if (scanner === undefined || customResponse === null) throw new Error('the profile scans nothing')
const customScanner = customResponse.scanner

const rows: readonly Row[] = [
  {
    parser: 'redaction',
    part: 'JSON',
    limit: MIB,
    families: { ...json, ...text },
    run: (input) => runAtOnce(findInJson(Buffer.from(input), scanner, MIB)),
  },
  {
    parser: 'redaction',
    part: 'expressions of people',
    limit: MIB,
    families: { ...json, ...text },
    run: (input) => runAtOnce(findInJson(Buffer.from(input), customScanner, MIB)),
  },
  {
    parser: 'redaction',
    part: 'messages',
    limit: MIB,
    families: {
      ...json,
      'hits of an expression': (n) => `"${'ab.cdx '.repeat(n / 7)}"`,
      'a hit in each string': (n) => `[${'"ab.cdx",'.repeat(n / 9)}1]`,
      'a hit in each number': (n) => `[${'123456789012,'.repeat(n / 13)}1]`,
      addresses: (n) => `"${'a1@mail.plat.dev '.repeat(n / 17)}"`,
      'addresses in strings': (n) => `[${'"a1@mail.plat.dev",'.repeat(n / 19)}1]`,
    },
    run: (input) => {
      const redaction = new Redaction(custom, customResponse, 'response', () => {})
      return redaction.message(Buffer.from(input), {})
    },
  },
  {
    // One read of a socket brings about a thousand pieces at most.
    parser: 'redaction',
    part: 'a text in pieces',
    limit: 16 * KIB,
    families: { ...json, ...text },
    run: (input) => {
      const stream = new TextStream({ scanner, carry: 256, isRedacted: () => true, isJson: true })
      for (let at = 0; at < input.length; at += 16) stream.push(input.slice(at, at + 16))
      stream.end()
    },
  },
]

export const target = costTarget('cost/redaction', rows)
