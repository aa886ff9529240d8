import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Frame, type FrameVerdict, isDenial, type Redactor, unresolved } from '../../../call/index.ts'
import { testCall } from '../../../call/testing/call.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { stepless } from '../../../call/testing/steps.ts'
import type { RunningReview } from '../../../pipeline/stage.ts'
import { chat } from '../dialects/chat.ts'
import { ModelFrame } from '../frame.ts'
import { createAnswerRedactReview } from './review.ts'
import { Pen } from './testing.ts'

const redacted = (json: Uint8Array) => Buffer.from(Buffer.from(json).toString().replaceAll('secret', '[X]'))
const redactor: Redactor = { steps: (json) => stepless(redacted(json)), message: redacted, pieces: () => new Pen() }

function opened(): RunningReview {
  const facts = { identity: testIdentity, target: { ...unresolved, kind: 'model' as const } }
  const running = createAnswerRedactReview(() => redactor).open(
    testCall(facts, { operation: 'model.generate', method: 'chat/completions', server: 'small', name: 'm' }),
  )
  assert.ok(running !== null)
  return running
}

const event = (data: object | string) =>
  chat.events.frame(Buffer.from(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`))
const DONE = event('[DONE]')

const chunk = (delta: object, more: object = {}) =>
  event({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1.0,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: null, ...more }],
  })

function framesOf(passed: FrameVerdict): readonly Frame[] {
  assert.ok(!(passed instanceof Promise) && !isDenial(passed))
  return passed
}

/** The texts that a client assembles from the frames: each member of each choice's delta, as one text. */
function assembled(frames: readonly Frame[]): Record<string, string> {
  const texts: Record<string, string> = {}
  const add = (way: string, value: unknown): void => {
    if (typeof value === 'string') texts[way] = (texts[way] ?? '') + value
    else if (Array.isArray(value)) for (const one of value) add(`${way}[${one.index}]`, one)
    else if (typeof value === 'object' && value !== null)
      for (const [name, one] of Object.entries(value)) add(`${way}.${name}`, one)
  }
  for (const { raw } of frames) {
    const data = Buffer.from(raw ?? [])
      .toString()
      .slice('data: '.length)
    if (data.startsWith('[DONE]')) continue
    for (const choice of JSON.parse(data).choices) add(`${choice.index}`, choice.delta)
  }
  return texts
}

test('texts of several choices and tool calls are separated wherever they are cut and mixed', () => {
  const texts: readonly (readonly [string, (piece: string) => object, string])[] = [
    ['0.content', (content) => ({ index: 0, delta: { content } }), 'it is secret and secre'],
    ['0.reasoning_content', (piece) => ({ index: 0, delta: { reasoning_content: piece } }), 'a secret, s'],
    ['1.content', (content) => ({ index: 1, delta: { content } }), 'secretsecret'],
    [
      '0.tool_calls[1].function.arguments',
      (piece) => ({ index: 0, delta: { tool_calls: [{ index: 1, function: { arguments: piece } }] } }),
      '{"a":"secret"}',
    ],
  ]
  const turns = fc.array(fc.tuple(fc.nat(texts.length - 1), fc.integer({ min: 1, max: 6 })), { maxLength: 60 })
  fc.assert(
    fc.property(turns, fc.boolean(), (order, finishes) => {
      const running = opened()
      const left = texts.map(([, , text]) => text)
      const frames: Frame[] = []
      const send = (which: number, size: number) => {
        const piece = left[which]?.slice(0, size) ?? ''
        left[which] = left[which]?.slice(size) ?? ''
        const choice = texts[which]?.[1](piece)
        if (piece !== '') frames.push(...framesOf(running.frame(event({ id: 'c', choices: [choice] }))))
      }
      for (const [which, size] of order) send(which, size)
      for (let which = 0; which < texts.length; which++) send(which, 1000)
      if (finishes) {
        for (const index of [0, 1])
          frames.push(...framesOf(running.frame(event({ choices: [{ index, delta: {}, finish_reason: 'stop' }] }))))
      }
      frames.push(...framesOf(running.frame(DONE)), ...framesOf(running.end('complete')))
      const expected = Object.fromEntries(texts.map(([way, , text]) => [way, text.replaceAll('secret', '[X]')]))
      assert.deepEqual(assembled(frames), expected)
      const last = Buffer.from(frames.at(-1)?.raw ?? []).toString()
      assert.equal(last, 'data: [DONE]\n\n')
    }),
  )
})

test('withheld text is sent before the end of its choice, under the same id, or with the last piece', () => {
  const running = opened()
  assert.deepEqual(assembled(framesOf(running.frame(chunk({ content: 'no secr' })))), { '0.content': 'no ' })
  const [held, last] = framesOf(running.frame(chunk({}, { finish_reason: 'stop' })))
  assert.deepEqual(
    JSON.parse(
      Buffer.from(held?.raw ?? [])
        .toString()
        .slice(6),
    ),
    {
      id: 'c1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta: { content: 'secr' }, finish_reason: null }],
    },
  )
  assert.match(Buffer.from(last?.raw ?? []).toString(), /"finish_reason":"stop"/)
  const both = framesOf(opened().frame(chunk({ content: 'a sec' }, { finish_reason: 'length' })))
  assert.deepEqual(assembled(both), { '0.content': 'a sec' })
})

test('a chunk that nothing is taken out of is the frame that came; a changed one keeps its numbers, and loses its logprobs', () => {
  const running = opened()
  for (const frame of [
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'hello ' }),
    event({ choices: [], usage: {} }),
    chat.events.frame(Buffer.from(': comment\n\n')),
  ]) {
    assert.equal(framesOf(running.frame(frame))[0], frame)
  }
  const raw =
    'data: {"id":"c","created":1.50,"choices":[{"index":0,"delta":{"content":"a secret"},"logprobs":{"content":[{"token":"secret"}]}}]}\n\n'
  const [passed] = framesOf(running.frame(chat.events.frame(Buffer.from(raw))))
  assert.equal(
    Buffer.from(passed?.raw ?? []).toString(),
    'data: {"id":"c","created":1.50,"choices":[{"index":0,"delta":{"content":"a [X]"},"logprobs":null}]}\n\n',
  )
})

test('a whole answer loses the logprobs that would spell out what was taken', () => {
  const body = '{"choices":[{"message":{"content":"secret"},"logprobs":{"content":[{"token":"sec"}]}}],"n":1.0}'
  const [frame] = framesOf(opened().frame(ModelFrame.body(Buffer.from(body))))
  const text = Buffer.from(frame?.raw ?? []).toString()
  assert.equal(text, '{"choices":[{"message":{"content":"[X]"},"logprobs":null}],"n":1.0}')
})

test('a text is found again by its place, after others have ended, and beyond the limit each piece is a text', async () => {
  const choices = (...all: readonly object[]) => event({ id: 'c1', choices: all })
  const at = (index: number, delta: object, finish: string | null = null) => ({ index, delta, finish_reason: finish })
  const call = (text: string) => ({ tool_calls: [{ index: 3, function: { arguments: text } }, { list: [[text]] }] })
  const running = opened()
  const frames: Frame[] = []
  for (const frame of [
    choices(at(0, { content: 'se', ...call('sec') }), at(1, { content: 'sec' })),
    choices(at(1, { content: 'ret' }, 'stop'), at(0, call('r'))),
    choices(at(1, { content: 'sec' }), at(0, { content: 'cret', ...call('et') })),
    choices(at(1, { content: 'ret' }, 'stop'), at(0, { content: '.', ...call('.') }, 'stop')),
    choices(...Array.from({ length: 1030 }, (_, index) => at(index, { content: 'sec' }))),
    choices(at(1028, { content: 'ret secret' }), at(7, { content: 'ret' })),
    DONE,
  ])
    frames.push(...framesOf(await running.frame(frame)))
  const texts = assembled([...frames, ...framesOf(running.end('complete'))])
  assert.equal(texts['0.content'], '[X].sec')
  assert.equal(texts['0.tool_calls[3].function.arguments'], '[X].')
  assert.equal(texts['1.content'], '[X][X]sec')
  assert.equal(texts['7.content'], '[X]')
  assert.equal(texts['1028.content'], 'secret [X]')
})

test('denied content ends the stream with a refusal', () => {
  const passed = opened().frame(chunk({ content: 'FORBIDDEN things' }))
  assert.ok(isDenial(passed))
})
