import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { isObject, parseStrict } from '@plat/core'
import fc from 'fast-check'
import { callOf } from '../testing/call.ts'
import { digestOf } from './digest.ts'
import { previewOf, wholeOf } from './preview.ts'

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))

test('mode full shows raw arguments, none shows nothing, hash shows their hash', () => {
  // Shows D3.approvals.approvalPreview.mode.full, D3.approvals.approvalPreview.mode.none,
  // D3.approvals.approvalPreview.mode.hash.
  // Shows D3.approvals.approvalPreview.mode.
  const args = Buffer.from('{"n": 12345678901234567890}')
  const max = { maxBytes: 4096 }
  assert.deepEqual(previewOf(args, { mode: 'full', ...max }), { mode: 'full', text: args.toString(), truncated: false })
  assert.equal(previewOf(args, { mode: 'none', ...max }), null)
  const text = `sha256:${hash('sha256', args, 'hex')}`
  assert.deepEqual(previewOf(args, { mode: 'hash', ...max }), { mode: 'hash', text, truncated: false })
  assert.equal(previewOf(null, { mode: 'full', ...max }), null)
})

test('redacted shows names, kinds and sizes', () => {
  // Shows D3.approvals.approvalPreview.mode.redacted.
  const value = { to: ['ada', 'bob'], amount: 12, note: 'grüße', deep: { ok: true, none: null }, 'a@example.com': 1 }
  const preview = previewOf(bytes(value), { mode: 'redacted', maxBytes: 4096 })
  assert.equal(
    preview?.text,
    '{to: [<string, 3 bytes>, <string, 3 bytes>], amount: <number>, note: <string, 7 bytes>, ' +
      'deep: {ok: <boolean>, none: null}, <name, 13 bytes>: <number>}',
  )
})

test('the shape of arguments does not depend on white space, escapes or the form of numbers', () => {
  const shape = (json: string) => previewOf(Buffer.from(json), { mode: 'redacted', maxBytes: 4096 })?.text
  assert.equal(
    shape(' { "\\u0061b" : [ ] , "c" : { } , "d":[-1.0e5 ,true]} '),
    '{ab: [], c: {}, d: [<number>, <boolean>]}',
  )
  assert.equal(
    shape('["\\ud83d\\ude00\\n", "\\ud800", "é\\""]'),
    '[<string, 5 bytes>, <string, 3 bytes>, <string, 3 bytes>]',
  )
  assert.equal(
    shape('{"__proto__":1,"2":"","1":null}'),
    '{__proto__: <number>, <name, 1 bytes>: <string, 0 bytes>, <name, 1 bytes>: null}',
  )
  for (const [json, text] of [
    ['false', '<boolean>'],
    ['1e3', '<number>'],
    ['""', '<string, 0 bytes>'],
    ['[]', '[]'],
  ])
    assert.equal(shape(json ?? ''), text)
})

test('the shape of long arguments is read no further than the preview is long', () => {
  // Behind the first elements there is no JSON, which nothing notices.
  const args = Buffer.from(`[${'1,'.repeat(200)}!`)
  const preview = previewOf(args, { mode: 'redacted', maxBytes: 100 })
  assert.deepEqual(preview, { mode: 'redacted', text: `[${'<number>, '.repeat(10)}`.slice(0, 100), truncated: true })
})

test('redacted shows the output of data-loss prevention where a profile applies', () => {
  const view = { text: '{"to":"[REDACTED:email]"}', hits: 1 }
  const preview = previewOf(bytes({ to: 'ada@example.com' }), { mode: 'redacted', maxBytes: 20 }, view)
  assert.deepEqual(preview, { mode: 'redacted', text: '{"to":"[REDACTED:ema', truncated: true })
  const hashed = previewOf(bytes({ to: 1 }), { mode: 'hash', maxBytes: 100 }, view)
  assert.ok(hashed?.text.startsWith('sha256:'))
})

test('without a profile all detectors redact, and a shape is marked as truncated', () => {
  const mode = { mode: 'redacted', maxBytes: 4096 } as const
  const left = Buffer.from('{"to":"[REDACTED:email]","amount":12}')
  const preview = previewOf(bytes({ to: 'ada@example.com', amount: 12 }), mode, null, left)
  assert.deepEqual(preview, { mode: 'redacted', text: left.toString(), truncated: false })
  assert.equal(previewOf(bytes({ amount: 12 }), mode, null, null)?.truncated, true)
})

test('a redacted preview contains no text of the arguments', () => {
  const secret = 'S3cr3t-that-must-not-show'
  const around = fc.letrec((tie) => ({
    value: fc.oneof(fc.constant(secret), fc.integer(), fc.array(tie('value'), { maxLength: 3 }), tie('object')),
    object: fc.dictionary(fc.constantFrom('a', 'b', `${secret} in a name`), tie('value'), { maxKeys: 3 }),
  })).value
  fc.assert(
    fc.property(around, (value) => {
      const preview = previewOf(bytes({ value }), { mode: 'redacted', maxBytes: 65_536 })
      assert.ok(!JSON.stringify(preview).includes(secret))
    }),
  )
})

test('a preview is never longer than its cap and ends at a character boundary', () => {
  // Shows D3.approvals.approvalPreview.maxBytes.
  const modes = fc.constantFrom('full' as const, 'redacted' as const)
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 1, max: 200 }), modes, (value, maxBytes, mode) => {
      const preview = previewOf(bytes(value), { mode, maxBytes })
      assert.ok(preview !== null)
      assert.ok(Buffer.byteLength(preview.text) <= maxBytes)
      assert.ok(preview.text.isWellFormed() && !preview.text.includes('\ufffd'))
      if (mode === 'full' && !preview.truncated) assert.equal(preview.text, JSON.stringify(value))
    }),
  )
})

test('arguments share a digest if and only if they are the same value', async () => {
  const digest = (args: string) => digestOf(callOf({ args }), 'rule')
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (one, other) => {
      const [a, b] = [JSON.stringify(one), JSON.stringify(other)]
      assert.equal(await digest(JSON.stringify(parseStrict(a), null, 2)), await digest(a))
      assert.equal((await digest(a)) === (await digest(b)), canonical(one) === canonical(other))
    }),
  )
  assert.equal(await digest('{"a":1,"b":2.50}'), await digest('{ "b":2.5, "a":1 }'))
})

test('an approval is bound to everything that is forwarded with the arguments', async () => {
  const digest = (beside: unknown) => {
    const call = callOf({ args: '{"a":1}' })
    return digestOf({ ...call, body: call.body === null ? null : { ...call.body, beside } }, 'rule')
  }
  assert.equal(await digest(undefined), await digestOf(callOf({ args: '{"a":1}' }), 'rule'))
  const accepted = await digest({ inputResponses: { a: { action: 'accept' } } })
  assert.notEqual(accepted, await digest(undefined))
  assert.notEqual(accepted, await digest({ inputResponses: { a: { action: 'decline' } } }))
})

test('long arguments have the same digest as the text of their canonical form, read in several turns', async () => {
  const long = JSON.stringify({ b: 'x'.repeat(100_000), a: [1.5, 'é'] })
  let turns = 0
  const count = () => {
    turns++
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  const digest = await digestOf(callOf({ args: long }), 'rule')
  clearImmediate(next)
  assert.ok(turns >= 2)
  assert.equal(digest, await digestOf(callOf({ args: `${long.slice(0, -1)} }` }), 'rule'))
  assert.notEqual(digest, await digestOf(callOf({ args: long.replace('1.5', '1.25') }), 'rule'))
})

/** Members in a fixed order; JSON text writes -0 as 0. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  )
}

test('whole arguments are what the preview begins with, if they exceed it and can be stored', () => {
  const args = bytes({ name: 'ada@example.com' })
  const view = { text: '{"name":"[REDACTED:email]"}', hits: 1 }
  const limits = { maxBytes: 10, maxStoredBytes: 100 }
  assert.equal(wholeOf(args, { mode: 'full', ...limits }), args.toString())
  assert.equal(wholeOf(args, { mode: 'redacted', ...limits }, view), view.text)
  assert.equal(wholeOf(args, { mode: 'redacted', ...limits }, null, Buffer.from('{"name":"x"}')), '{"name":"x"}')
  assert.equal(wholeOf(args, { mode: 'redacted', ...limits }), null, 'only their shape may be seen')
  for (const mode of ['none', 'hash'] as const) assert.equal(wholeOf(args, { mode, ...limits }, view), null)
  assert.equal(wholeOf(args, { mode: 'full', maxBytes: 100, maxStoredBytes: 100 }), null, 'the preview is whole')
  assert.equal(wholeOf(args, { mode: 'full', maxBytes: 10, maxStoredBytes: 20 }), null, 'too long')
  assert.equal(wholeOf(null, { mode: 'full', ...limits }), null)
})
