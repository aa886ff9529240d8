import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAtOnce } from '@plat/core'
import fc from 'fast-check'
import { type Denial, isDenial, type RedactionScope } from '../../call/index.ts'
import { target } from './dlp.fuzz.ts'
import { findInJson } from './json/strings.ts'
import { compileProfile, type ProfileConfig } from './profile.ts'
import { Redaction } from './redaction.ts'
import { DEFAULTS } from './testing/profiles.ts'
import { JWT, PEM, random } from './testing/samples.ts'

const CARD = '4111 1111 1111 1111'
const TOKEN = `ghp_${random(36)}`

interface Outcome {
  readonly text: string
  readonly displayed: string
  readonly hits: number
  readonly counted: readonly string[]
  readonly denial: Denial | null
}

/** A message of arguments after redaction by a profile, with the counted hits. */
function judged(json: string, own: Partial<ProfileConfig> = {}, where: RedactionScope = {}): Outcome {
  const counted: string[] = []
  const profile = compileProfile('p', { ...DEFAULTS, ...own })
  if (profile.arguments === null) return { text: json, displayed: json, hits: 0, counted, denial: null }
  const redaction = new Redaction(profile, profile.arguments, 'arguments', (...one) => counted.push(one.join(' ')))
  const result = redaction.judge(Buffer.from(json), where)
  if (isDenial(result)) return { text: '', displayed: '', hits: 0, counted, denial: result }
  const { bytes, displayed, hits } = result
  return {
    text: Buffer.from(bytes).toString(),
    displayed: Buffer.from(displayed).toString(),
    hits,
    counted,
    denial: null,
  }
}

test('strings are scanned decoded, and a changed string is encoded again', () => {
  const escaped = [...CARD].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
  assert.equal(judged(`{"a":"${escaped}","b":"\\u0041"}`).text, '{"a":"[REDACTED:credit_card]","b":"\\u0041"}')
  assert.equal(judged(`["\\"${CARD}\\"\\n\\u00e9"]`).text, '["\\"[REDACTED:credit_card]\\"\\né"]')
  assert.equal(judged(`["${CARD}é","é${CARD}"]`).text, '["[REDACTED:credit_card]é","é[REDACTED:credit_card]"]')
  assert.equal(judged(JSON.stringify([PEM, JWT])).text, '["[REDACTED:private_key]","[REDACTED:jwt]"]')
  // JSON in a string, and JSON in a string of JSON in a string.
  const nested = JSON.stringify(JSON.stringify({ key: PEM, t: `a\n${TOKEN}` }))
  assert.deepEqual(JSON.parse(JSON.parse(judged(nested).text)), {
    key: '[REDACTED:private_key]',
    t: 'a\n[REDACTED:github_token]',
  })
  assert.ok(!judged(JSON.stringify(nested)).text.includes('ghp_'))
})

test('numbers are read where they stand alone, and replaced as a whole', () => {
  assert.equal(judged('[4111111111111111, 1.5, 41e15]').text, '["[REDACTED:credit_card]", 1.5, 41e15]')
  assert.equal(judged('{"a":-4111111111111111}').text, '{"a":"[REDACTED:credit_card]"}')
  assert.equal(judged('[0.4111111111111111,4111111111111111.0]').text, '[0.4111111111111111,4111111111111111.0]')
  assert.equal(judged('{"steuerId":86095742719}').text, '{"steuerId":86095742719}')
})

test('any message without a hit is the very same bytes', () => {
  const profile = compileProfile('p', DEFAULTS)
  assert.ok(profile.arguments !== null)
  const redaction = new Redaction(profile, profile.arguments, 'arguments', () => {})
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const bytes = Buffer.from(JSON.stringify(value))
      const result = redaction.judge(bytes, {})
      assert.ok(!isDenial(result))
      if (result.hits === 0) assert.equal(result.bytes, bytes)
    }),
  )
})

test('of actions the strictest decides; what only is audited is shown without it all the same', () => {
  const text = JSON.stringify({ card: CARD, token: TOKEN })
  const audit = judged(text, { requestAction: 'audit' })
  assert.equal(audit.text, text)
  assert.equal(audit.displayed, '{"card":"[REDACTED:credit_card]","token":"[REDACTED:github_token]"}')
  assert.deepEqual(audit.counted, ['credit_card arguments audit', 'github_token arguments audit'])
  const mixed = judged(text, { requestAction: 'audit', onSecret: 'redact' })
  assert.equal(mixed.text, `{"card":"${CARD}","token":"[REDACTED:github_token]"}`)
  assert.equal(mixed.displayed, audit.displayed)
  assert.equal(judged(text, { requestAction: 'redact', onSecret: 'audit' }).text, audit.displayed)
  const denied = judged(text, { requestAction: 'audit', onSecret: 'deny' })
  assert.equal(denied.denial?.code, 'dlp_denied')
  assert.match(denied.denial?.reason ?? '', /github_token/)
  assert.ok(!/credit_card|4111/.test(denied.denial?.reason ?? ''))
  assert.equal(judged(text, { requestAction: 'off' }).text, text)
  const secretsOnly = judged(text, { requestAction: 'off', onSecret: 'redact' })
  assert.equal(secretsOnly.text, mixed.text)
  assert.deepEqual(secretsOnly.counted, ['github_token arguments redact'])
})

test('named detectors replace the default ones, and own ones are always there', () => {
  // Shows D3.dlp.profile.detectors, D3.dlp.profile.entropyMinLength, D3.dlp.profile.entropyThreshold.
  const text = JSON.stringify(['a@example.com', CARD, 'order AB-77', random(40)])
  const marks = (own: Partial<ProfileConfig>) => judged(text, own).counted.map((line) => line.split(' ')[0])
  assert.deepEqual(marks({}), ['credit_card'])
  assert.deepEqual(marks({ detectors: ['email', 'high_entropy_secret'] }), ['email', 'high_entropy_secret'])
  assert.deepEqual(marks({ detectors: ['high_entropy_secret'], entropyMinLength: 41 }), [])
  assert.deepEqual(marks({ detectors: ['high_entropy_secret'], entropyThreshold: 6 }), [])
  const custom = [{ id: 'order', regex: 'AB-[0-9]{2}', secret: false }]
  assert.deepEqual(marks({ detectors: [], custom }), ['order'])
  const unicode = [{ id: 'word', regex: 'grüße', secret: false }]
  assert.equal(judged('["😀 grüße \\ud83d\\ude00"]', { custom: unicode }).text, '["😀 [REDACTED:word] 😀"]')
})

test('only what may be looked at counts, and what names the call is refused', () => {
  const text = JSON.stringify({ id: CARD, params: { name: CARD, arguments: { a: CARD }, cursor: CARD } })
  const where: RedactionScope = { within: [['params']], except: [['params', 'cursor']] }
  const { text: output, hits } = judged(text, {}, where)
  assert.equal(hits, 2)
  assert.deepEqual(JSON.parse(output), {
    id: CARD,
    params: { name: '[REDACTED:credit_card]', arguments: { a: '[REDACTED:credit_card]' }, cursor: CARD },
  })
  const { denial } = judged(text, {}, { ...where, fixed: [['params', 'name']] })
  assert.deepEqual([denial?.code, denial?.data], ['dlp_denied', { unnamed: true }])
  assert.equal(judged(text, { requestAction: 'audit' }, { ...where, fixed: [['params', 'name']] }).hits, 2)
  const left = judged(`{"name" : "${CARD}","other\\"name":"${CARD}","b":["${CARD}"]}`, {}, { left: ['name'] }).text
  assert.equal(left, `{"name" : "${CARD}","other\\"name":"[REDACTED:credit_card]","b":["[REDACTED:credit_card]"]}`)
})

test('more text than is read is refused where something is enforced, else it passes and is counted', () => {
  // Shows D3.dlp.profile.maxScanBytes, D3.dlp.profile.onOversize.
  const text = JSON.stringify(['a'.repeat(60), 'b'.repeat(60), CARD])
  assert.equal(judged(text, { maxScanBytes: 100 }).denial?.code, 'dlp_denied')
  const lax = judged(text, { maxScanBytes: 100, onOversize: 'audit' })
  assert.deepEqual([lax.text, lax.counted], [text, ['oversize arguments audit']])
  assert.equal(judged(text, { maxScanBytes: 100, requestAction: 'audit' }).denial, null)
  assert.equal(
    judged(text, { maxScanBytes: 100, requestAction: 'audit', onOversize: 'deny' }).denial?.code,
    'dlp_denied',
  )
})

test('a file in base64 is text like any other: it is scanned, and counts towards what may be scanned', () => {
  const file = 'q7Zp2mXw'.repeat(1000)
  const key = `${file}/AKIAQ3EGMRT5NWZ7H2KD`
  for (const text of [JSON.stringify([file]), JSON.stringify([`data:image/png;base64,${file}`])]) {
    const { denial, counted } = judged(text, { maxScanBytes: 100 })
    assert.equal(denial?.code, 'dlp_denied')
    assert.deepEqual(counted, ['oversize arguments deny'])
  }
  const { text, denial } = judged(JSON.stringify([key]), {})
  assert.ok(denial !== null || !text.includes('AKIA'), text.slice(-40))
})

test('custom detectors find the same with and without a first scan of the whole message', () => {
  const regexes = ['4711', 'ab.c', '(?:[a-z0-9]+[.@-])+[a-z]{2,8}x', 'true|null', '"|,|:']
  // The same expression, which must be matched against a part of a text by itself.
  const scanners = regexes.map((regex) =>
    [regex, `(?:${regex})(?:\\b|\\B)`].map((each) => {
      const custom = [{ id: 'own', regex: each, secret: false }]
      return compileProfile('p', { ...DEFAULTS, custom }).response?.scanner ?? assert.fail()
    }),
  )
  const texts = fc.constantFrom('4711', 'ab', 'ab-c', 'a@b.cdx', 'é', '\u0061', 'alice 4111111111111111', '"', 'x', '')
  const value = fc.jsonValue({ maxDepth: 3 })
  const json = fc.oneof(fc.dictionary(texts, fc.oneof(texts, fc.constantFrom(4711, true, 4111111111111111))), value)
  fc.assert(
    fc.property(json, fc.constantFrom(...scanners), (message, [first, each]) => {
      assert.ok(first !== undefined && each !== undefined)
      const bytes = Buffer.from(JSON.stringify(message))
      const foundBy = (scanner: typeof first) =>
        runAtOnce(findInJson(bytes, scanner, 1024 * 1024)).found.map(({ start, end, hits, kind }) => {
          return { start, end, kind, hits: hits.map((hit) => [hit.detector.id, hit.start, hit.end]) }
        })
      assert.deepEqual(foundBy(first), foundBy(each))
    }),
    { numRuns: 2000 },
  )
})

test('a custom detector finds what it names however short, in strings, names and literals', () => {
  const custom = [{ id: 'pin', regex: '\\b(7|true|4711)\\b', secret: false }]
  const { text } = judged('{"4711":"7","a":4711,"b":[7,{"c":true}],"d":47110}', { custom })
  const mark = '"[REDACTED:pin]"'
  assert.equal(text, `{${mark}:${mark},"a":${mark},"b":[${mark},{"c":${mark}}],"d":47110}`)
})

test('a text in pieces and the same text in one piece lose the same, also where characters are escaped', () => {
  const profile = compileProfile('p', { ...DEFAULTS, custom: [{ id: 'pin', regex: '4711', secret: false }] })
  assert.ok(profile.response !== null)
  const redaction = new Redaction(profile, profile.response, 'response', () => {})
  const escaped = (text: string) => [...text].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
  const texts = [
    `{"a":"${CARD}","b":"${escaped(CARD)}","c":"\\u000a${CARD}\\n${escaped(CARD)}\\u0022"}`,
    `{"pin":"47\\u00311","n":4711,"u":"\\\\u0034${'711'}","s":"\\ud83d\\ude00 \\/"}`,
  ]
  for (const text of texts) {
    const whole = runAtOnce(redaction.steps(Buffer.from(text), {}))
    assert.ok(!isDenial(whole))
    for (let at = 1; at < text.length; at++) {
      const pieces = redaction.pieces(true)
      const parts = [runAtOnce(pieces.push(text.slice(0, at))), runAtOnce(pieces.push(text.slice(at))), pieces.end()]
      assert.deepEqual(JSON.parse(parts.join('')), JSON.parse(Buffer.from(whole).toString()), `cut at ${at}`)
    }
  }
})

test('a long message is redacted in slices, between which other callbacks run, to what it is at once', async () => {
  const profile = compileProfile('p', { ...DEFAULTS, custom: [{ id: 'pin', regex: 'pin-[0-9]{4}', secret: false }] })
  assert.ok(profile.response !== null)
  const redaction = new Redaction(profile, profile.response, 'response', () => {})
  for (const text of [`"${'pin-4711 '.repeat(60_000)}"`, `[${'"pin-4711",4711,'.repeat(30_000)}1]`]) {
    const json = Buffer.from(text)
    let turns = 0
    const turn = () => {
      turns++
      waiting = setImmediate(turn)
    }
    let waiting = setImmediate(turn)
    const redacted = await redaction.message(json, {})
    clearImmediate(waiting)
    assert.ok(turns > 1, `${turns} turns`)
    const atOnce = runAtOnce(redaction.steps(json, {}))
    assert.ok(!isDenial(redacted) && !isDenial(atOnce))
    assert.ok(Buffer.from(redacted).equals(atOnce))
    assert.ok(!Buffer.from(redacted).includes('pin-4711'))
  }
})

test('of a streamed answer so much is read in all its texts together, and no more', () => {
  const made = (onOversize: 'audit' | 'deny') => {
    const profile = compileProfile('p', { ...DEFAULTS, maxScanBytes: 30, onOversize })
    assert.ok(profile.response !== null)
    return new Redaction(profile, profile.response, 'response', () => {})
  }
  const lax = made('audit')
  const pieces = (redaction: Redaction) => {
    const text = redaction.pieces(false)
    return { push: (piece: string) => runAtOnce(text.push(piece)) }
  }
  const [one, other] = [pieces(lax), pieces(lax)]
  assert.deepEqual([one.push('card 4111 1111'), other.push('fine')], ['card ', 'fine'])
  // Held-back text is forwarded before text that is no longer scanned.
  assert.equal(one.push(' 1111 1111 and so on'), '4111 1111 1111 1111 and so on')
  assert.equal(other.push(CARD), CARD)
  const strict = pieces(made('deny'))
  assert.equal(strict.push('fine, fine, fine, fine, '), 'fine, fine, fine, fine, ')
  const refused = strict.push('fine, fine')
  assert.ok(isDenial(refused))
  assert.match(refused.reason, /more text than the 30 bytes/)
})

test('the promises of the fuzz target hold for a moment', async () => {
  assert.deepEqual((await target.run(1, 7)).failures, [])
})
