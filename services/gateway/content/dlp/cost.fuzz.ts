import { runAtOnce, runInSlices } from '@plat/core'
import { costTarget, type Families, type Row } from '../../../../test/fuzz/cost.ts'
import { json, text } from '../../../../test/fuzz/families.ts'
import { testMetrics } from '../../testing/metrics.ts'
import { createEraser } from './eraser.ts'
import { findInJson } from './json/strings.ts'
import { compileProfile } from './profile.ts'
import { Redaction } from './redaction.ts'
import { createScreens } from './screens.ts'
import { TextStream } from './stream.ts'
import { DEFAULTS } from './testing/profiles.ts'

const KIB = 1024
const MIB = 1024 * KIB

const profile = compileProfile('cost', DEFAULTS)
const customConfig = {
  ...DEFAULTS,
  custom: [{ id: 'x', regex: '(?:[a-z0-9]+[.@-])+[a-z]{2,8}x|123456789012', secret: false }],
}
const custom = compileProfile('custom', customConfig)
const { response: customResponse } = custom
const scanner = profile.response?.scanner
if (scanner === undefined || customResponse === null) throw new Error('the profile scans nothing')
const customScanner = customResponse.scanner

/** Expressions that read on after what they match, and those that begin a match at every character. */
const far = compileProfile('far', {
  ...DEFAULTS,
  custom: [
    { id: 'a', regex: 'a[^b]*b|a', secret: false },
    { id: 'b', regex: '[a-z0-9 ]{1,40}!', secret: true },
  ],
})
if (far.response === null) throw new Error('the profile scans nothing')
const farScanner = far.response.scanner

const erase = createEraser({ custom: customConfig }, 'custom')
const screen = createScreens({ custom: customConfig }, testMetrics())('custom')
if (screen === null) throw new Error('there is no screen')

/** Expressions with which a library that goes back tries each division of a text. */
const back = compileProfile('back', { ...DEFAULTS, custom: [{ id: 'a', regex: '(a+)+$|(x|xx)*y', secret: false }] })
if (back.response === null) throw new Error('the profile scans nothing')
const backScanner = back.response.scanner

/** Strings that end at once, late or never, and values of detectors one after the other. */
const pieces: Families = {
  'short strings': (n) => '"abcdefgh",'.repeat(n / 11),
  'quotes with escapes': (n) => '"\\"'.repeat(n / 3),
  'escaped quotes': (n) => '\\"'.repeat(n / 2),
  'strings in escapes': (n) => '"a\\\\'.repeat(n / 4),
  quotes: (n) => '"'.repeat(n),
  'numbers of cards': (n) => '"4111 1111 1111 1111",'.repeat(n / 22),
  'short numbers': (n) => '12345678,'.repeat(n / 9),
}

/** Matches at the end of long texts, of which each character could begin one. */
const gaps: Families = {
  'a hit after a gap': (n) => `"${' '.repeat(n)}ab.cdx"`,
  'a long hit': (n) => `"${'a1'.repeat(n / 2)}.abx"`,
  'hits after gaps': (n) => `"${`${'a1'.repeat(1000)}.abx `.repeat(n / 2005)}"`,
}

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
    families: { ...json, ...text, ...pieces },
    run: (input) => runInSlices(findInJson(Buffer.from(input), customScanner, MIB)),
  },
  {
    // Longer messages are redacted in slices.
    parser: 'redaction',
    part: 'short messages',
    limit: 32 * KIB,
    families: { ...json, ...gaps, ...pieces },
    run: (input) => runAtOnce(findInJson(Buffer.from(input), customScanner, MIB)),
  },
  {
    parser: 'redaction',
    part: 'expressions that look far',
    limit: MIB,
    families: { ...text, ...gaps },
    run: (input) => runInSlices(findInJson(Buffer.from(JSON.stringify(input)), farScanner, MIB)),
  },
  {
    parser: 'redaction',
    part: 'expressions that go back',
    limit: MIB,
    families: { 'two repetitions': (n) => `"${'a'.repeat(n / 2)}!${'x'.repeat(n / 2)}"` },
    run: (input) => runInSlices(findInJson(Buffer.from(input), backScanner, MIB)),
  },
  {
    parser: 'redaction',
    part: 'arguments for people',
    limit: MIB,
    families: { ...json, ...gaps },
    run: (input) => erase(Buffer.from(input)),
  },
  {
    parser: 'redaction',
    part: 'stored items',
    limit: MIB,
    families: { ...json, ...gaps },
    run: (input) => screen.stored(Buffer.from(input), {}),
  },
  {
    // One event of a model.
    parser: 'redaction',
    part: 'a long piece of a text',
    limit: MIB,
    families: { ...json, ...text, ...gaps },
    run: (input) => runInSlices(new Redaction(custom, customResponse, 'response', () => {}).pieces(true).push(input)),
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
      for (let at = 0; at < input.length; at += 16) runAtOnce(stream.push(input.slice(at, at + 16)))
      stream.end()
    },
  },
]

export const target = costTarget('cost/redaction', rows)
