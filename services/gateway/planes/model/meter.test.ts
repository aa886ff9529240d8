import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Call, type Frame, FrameRun, isDenial, type Target } from '../../call/index.ts'
import { testCall, testTarget } from '../../call/testing/call.ts'
import { chat as chatDialect } from './dialects/chat.ts'
import type { Dialect } from './dialects/dialect.ts'
import { messages } from './dialects/messages.ts'
import { responses } from './dialects/responses.ts'
import { EventReader } from './events/reader.ts'
import { ModelFrame } from './frame.ts'
import { createMeter } from './meter.ts'
import { readModelBody } from './request.ts'

const target: Target = { ...testTarget, kind: 'model', key: 'r', server: 'llm/r', tool: 'm', trust: 'trusted' }
const fields = { operation: 'model.generate', method: 'chat/completions', server: 'r', name: 'm' } as const

function callOf(text: string | null): Call<'target' | 'hold'> {
  const body = text === null ? null : readModelBody(Buffer.from(text), chatDialect)
  if (body !== null && isDenial(body)) return assert.fail(body.reason)
  return testCall({ target, hold: null }, { ...fields, body })
}

const STREAM = '{"model":"m","stream":true}'
const event = (data: string) => chatDialect.events.frame(Buffer.from(`data: ${data}\n\n`))
const usage = (prompt: number, completion: number) => ({ prompt_tokens: prompt, completion_tokens: completion })

/** Returns the frames that pass a meter, and its tally. */
function metered(frames: readonly Frame[], request = STREAM) {
  const running = createMeter((_, { prompt, completion }) => prompt + 10 * completion).open(callOf(request))
  assert.ok(running)
  const passed: Frame[] = []
  for (const frame of frames) {
    const out = running.frame(frame)
    if (!Array.isArray(out)) return assert.fail('frames only')
    passed.push(...out)
  }
  assert.deepEqual(running.end('complete'), [])
  return { passed, tally: running.tally?.() }
}

test('a reply that is not a model call is left alone', () => {
  assert.equal(createMeter(() => 1).open(callOf(null)), null)
})

test('the chunk of usage is counted, priced, and removed if the caller did not request it', () => {
  const text = event('{"choices":[{"delta":{"content":"x"}}],"usage":null}')
  const last = event(JSON.stringify({ choices: [], usage: usage(3, 4) }))
  const { passed, tally } = metered([text, last, event('[DONE]')])
  assert.deepEqual(passed.map((frame) => frame.raw).length, 2)
  assert.ok(!passed.includes(last))
  assert.deepEqual([tally?.usage?.prompt, tally?.usage?.completion, tally?.costMicros], [3, 4, 43])
  assert.equal(tally?.usageSource, 'reported')
  const body = '{"model":"m","stream":true,"stream_options":{"include_usage":true}}'
  assert.ok(metered([text, last], body).passed.includes(last))
})

test('usage in a chunk with text, as some servers send it, counts and passes; the last one counts', () => {
  const frames = [1, 2, 3].map((count) => event(JSON.stringify({ choices: [{ delta: {} }], usage: usage(5, count) })))
  const { passed, tally } = metered(frames)
  assert.deepEqual([passed.length, tally?.usage?.completion], [3, 3])
})

test('text that speaks of usage is text', () => {
  const content = 'say "usage":{"prompt_tokens":1,"completion_tokens":1} and \\"usage\\"'
  const { passed, tally } = metered([event(JSON.stringify({ choices: [{ delta: { content } }] }))])
  assert.deepEqual([passed.length, tally?.usageSource], [1, 'estimated'])
})

test('details of the usage are read where they are whole numbers', () => {
  const details = { prompt_tokens_details: { cached_tokens: 2 }, completion_tokens_details: { reasoning_tokens: 1 } }
  const body = ModelFrame.body(Buffer.from(JSON.stringify({ usage: { ...usage(9, 8), ...details } })))
  assert.deepEqual(metered([body], '{"model":"m"}').tally?.usage, {
    prompt: 9,
    completion: 8,
    cachedRead: 2,
    cachedWrite: 0,
    reasoning: 1,
  })
  for (const odd of [usage(-1, 2), usage(1.5, 2), usage(Number.MAX_VALUE, 2), { prompt_tokens: 1 }, null]) {
    const answer = ModelFrame.body(Buffer.from(JSON.stringify({ usage: odd })))
    assert.equal(metered([answer], '{"model":"m"}').tally?.usageSource, 'estimated', JSON.stringify(odd))
  }
})

test('an answer that was refused used nothing', () => {
  const { tally } = metered([ModelFrame.error(Buffer.from('{"error":{}}'))])
  assert.deepEqual([tally?.usageSource, tally?.usage?.prompt, tally?.costMicros], ['reported', 0, 0])
})

test('without a report the prompt is estimated, and the text counts at least a token an event', () => {
  const frames = Array.from({ length: 40 }, () => event('{"choices":[{"delta":{"content":"ab"}}]}'))
  const comment = chatDialect.events.frame(Buffer.from(': keep alive\n\n'))
  const { tally } = metered([comment, ...frames])
  assert.deepEqual([tally?.usage?.prompt, tally?.usage?.completion], [0, 40])
  const long = event(JSON.stringify({ choices: [{ delta: { content: 'some words '.repeat(500) } }] }))
  const estimate = metered([event('{"choices":[{"delta":{"content":""}}]}'), long]).tally?.usage?.completion ?? 0
  assert.ok(estimate >= 990 && estimate <= 1010, String(estimate))
})

test('events that came together count as each would alone', () => {
  const piece = 'data: {"choices":[{"delta":{"content":"ab"}}],"usage":null}\n\n'
  const short = 'data: {"choices":[],"usage": null}\n\n'
  const [run] = new EventReader(chatDialect.events).read(Buffer.from(piece + short + piece))
  assert.ok(run instanceof FrameRun)
  assert.deepEqual([run.count, run.shortest], [3, short.length])
  const running = () => createMeter(() => 0).open(callOf(STREAM))
  const [together, alone] = [running(), running()]
  together?.skim?.(run)
  for (const frame of run.apart()) alone?.frame(frame)
  assert.deepEqual(together?.tally?.(), alone?.tally?.())
  assert.equal(Buffer.concat(run.apart().map(({ raw }) => raw ?? Buffer.alloc(0))).toString(), piece + short + piece)
})

test('a run ends before an event that may end the stream, fail it, count what it used, or say nothing', () => {
  const text = 'data: {"choices":[{"delta":{"content":"ab"}}]}\n\n'
  const single = ['data: [DONE]\n\n', 'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n', ': beat\n\n']
  for (const event of single) {
    const read = new EventReader(chatDialect.events).read(Buffer.from(text + event))
    assert.deepEqual(
      read.map((frame) => [frame instanceof FrameRun, Buffer.from(frame.raw).toString()]),
      [
        [true, text],
        [false, event],
      ],
    )
  }
  for (const event of ['data: {"error":{}}\n\n', 'data: {}\r\n\r\n', 'data: {']) {
    const rawOf = (events: string) =>
      new EventReader(chatDialect.events).read(Buffer.from(events)).map(({ raw }) => Buffer.from(raw).toString())
    assert.deepEqual(rawOf(text + event), [text], event)
    assert.deepEqual(rawOf(event + text), [], event)
  }
})

/** Returns the tally of a dialect's meter for the events of a stream. */
function meteredNamed(dialect: Dialect, request: string, events: readonly object[]) {
  const body = readModelBody(Buffer.from(request), dialect)
  if (isDenial(body)) return assert.fail(body.reason)
  const running = createMeter(() => 0).open({ ...callOf(null), body })
  for (const one of events) {
    const name = 'type' in one ? String(one.type) : ''
    const raw = Buffer.from(`event: ${name}\ndata: ${JSON.stringify(one)}\n\n`)
    assert.ok(running?.frame(dialect.events.frame(raw)))
  }
  return running?.tally?.()
}

const begun = {
  type: 'message_start',
  message: { usage: { input_tokens: 5, cache_read_input_tokens: 3, output_tokens: 1 } },
}
const delta = { type: 'content_block_delta', index: 0, delta: { text: 'x'.repeat(300) } }
const over = { type: 'message_delta', usage: { output_tokens: 40 } }

test('the usage of a message is its beginning with the count of its end; a broken one is estimated on top of its beginning', () => {
  const ask = '{"model":"m","max_tokens":9,"stream":true,"messages":[]}'
  const whole = meteredNamed(messages, ask, [begun, delta, over, { type: 'message_stop' }])
  const used = { prompt: 8, completion: 40, cachedRead: 3, cachedWrite: 0, reasoning: 0 }
  assert.deepEqual([whole?.usage, whole?.usageSource], [used, 'reported'])
  const broken = meteredNamed(messages, ask, [begun, delta, delta])
  assert.deepEqual([broken?.usage?.prompt, broken?.usageSource], [8, 'estimated'])
  assert.ok((broken?.usage?.completion ?? 0) > 100)
})

test('the usage of a response is in its last event', () => {
  const usage = { input_tokens: 7, input_tokens_details: { cached_tokens: 2 }, output_tokens: 9 }
  const tally = meteredNamed(responses, '{"model":"m","input":"x","stream":true}', [
    { type: 'response.created', response: { usage: null } },
    { type: 'response.output_text.delta', delta: '"usage":{"input_tokens":1}' },
    { type: 'response.completed', response: { output: [], usage } },
  ])
  assert.deepEqual(tally?.usage, { prompt: 7, completion: 9, cachedRead: 2, cachedWrite: 0, reasoning: 0 })
})
