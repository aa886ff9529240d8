import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type Frame, isDenial, type Usage } from '../../../call/index.ts'
import { testCall, testTarget } from '../../../call/testing/call.ts'
import { chat } from '../dialects/chat.ts'
import { completions } from '../dialects/completions.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { embeddings } from '../dialects/embeddings.ts'
import { generateContent } from '../dialects/generate.ts'
import { messages } from '../dialects/messages.ts'
import { responses } from '../dialects/responses.ts'
import { ModelFrame } from '../frame.ts'
import { createMeter } from '../meter.ts'
import { readModelBody } from '../request.ts'
import { TokenEstimate } from './estimate.ts'

interface Golden {
  readonly texts: readonly { readonly name: string; readonly text: string; readonly tokens: Record<string, number> }[]
}

const golden: Golden = JSON.parse(readFileSync(new URL('golden-texts.json', import.meta.url), 'utf8'))
const texts = golden.texts.map(({ text }) => text)
/** Largest error of an estimate. */
const MOST = 0.2

function recorded({ tokenizer }: Dialect): number {
  return golden.texts.reduce((sum, { tokens }) => sum + (tokens[tokenizer] ?? Number.NaN), 0)
}

/** Pieces of the texts, as a stream has them. */
function pieces(length: number): readonly string[] {
  const all = texts.join('\n')
  return Array.from({ length: Math.ceil(all.length / length) }, (_, at) => all.slice(at * length, (at + 1) * length))
}

interface Traffic {
  readonly dialect: Dialect
  /** A request with all texts, some of them as turns of the assistant. */
  readonly request: object
  /** A whole response with all texts; null: nothing is generated. */
  readonly response: object | null
  /** The events of a stream with them. */
  readonly events: readonly object[]
}

const turns = (user: string, assistant: string) =>
  texts.map((text, at) => ({ role: at % 2 === 0 ? user : assistant, text }))
const turnsOf = turns('user', 'assistant').map(({ role, text }) => ({ role, content: text }))
const blocks = turns('user', 'assistant').map(({ role, text }) => ({ role, content: [{ type: 'text', text }] }))
const parts = texts.map((text) => ({ text }))

const TRAFFIC: readonly Traffic[] = [
  {
    dialect: chat,
    request: { model: 'm', messages: turnsOf },
    response: { id: 'c', choices: [{ index: 0, message: { role: 'assistant', content: texts.join('\n') } }] },
    events: pieces(5).map((content) => ({ id: 'c', choices: [{ index: 0, delta: { content } }] })),
  },
  {
    dialect: completions,
    request: { model: 'm', prompt: texts.join('\n') },
    response: { id: 'c', choices: [{ index: 0, text: texts.join('\n') }] },
    events: pieces(5).map((text) => ({ id: 'c', choices: [{ index: 0, text }] })),
  },
  {
    dialect: responses,
    request: { model: 'm', instructions: texts[0], input: turnsOf.slice(1) },
    response: { id: 'r', output: [{ type: 'message', content: texts.map((text) => ({ type: 'output_text', text })) }] },
    events: pieces(5).map((delta) => ({ type: 'response.output_text.delta', item_id: 'i', output_index: 0, delta })),
  },
  {
    dialect: messages,
    request: { model: 'm', max_tokens: 9, system: texts[0], messages: blocks.slice(1) },
    response: { type: 'message', role: 'assistant', content: texts.map((text) => ({ type: 'text', text })) },
    events: pieces(20).map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
  },
  {
    dialect: generateContent,
    request: { contents: turns('user', 'model').map(({ role, text }) => ({ role, parts: [{ text }] })) },
    response: { candidates: [{ content: { role: 'model', parts } }] },
    events: pieces(200).map((text) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] } }] })),
  },
  { dialect: embeddings, request: { model: 'm', input: texts }, response: null, events: [] },
]

/** Estimated usage of frames without a report. */
function estimated({ dialect, request }: Traffic, frames: readonly Frame[]): Usage {
  const body = readModelBody(Buffer.from(JSON.stringify(request)), dialect)
  if (isDenial(body)) return assert.fail(body.reason)
  const target = { ...testTarget, kind: 'model', key: 'r', server: 'llm/r', tool: 'm' } as const
  const call = testCall({ target, hold: null }, { operation: dialect.operation, server: 'r', name: 'm', body })
  const meter = createMeter(() => 0).open(call)
  for (const frame of frames) meter?.frame(frame)
  const tally = meter?.tally?.()
  assert.equal(tally?.usageSource, 'estimated')
  return tally?.usage ?? assert.fail('no usage')
}

const whole = (value: object) => ModelFrame.body(Buffer.from(JSON.stringify(value)))
const event = ({ events }: Dialect, data: object) => events.frame(Buffer.from(`data: ${JSON.stringify(data)}\n\n`))

for (const traffic of TRAFFIC) {
  const { dialect, response, events } = traffic
  test(`${dialect.method}: unreported tokens are estimated within 20 % of those of the tokenizer`, (t) => {
    const real = recorded(dialect)
    const check = (what: string, tokens: number) => {
      const error = tokens / real - 1
      t.diagnostic(`${dialect.method}, ${what}: ${tokens} of ${real} tokens, ${(error * 100).toFixed(1)} %`)
      assert.ok(Math.abs(error) <= MOST, `${what}: ${tokens} of ${real}`)
    }
    const body = estimated(traffic, [whole(response ?? { data: [] })])
    check('request', body.prompt)
    if (response === null) return assert.equal(body.completion, 0)
    check('response', body.completion)
    check(
      'stream',
      estimated(
        traffic,
        events.map((one) => event(dialect, one)),
      ).completion,
    )
  })
}

test('no text of the golden traffic is estimated further off than 25 %', () => {
  for (const tokenizer of ['openai', 'anthropic', 'google'] as const) {
    for (const { name, text, tokens } of golden.texts) {
      const estimate = new TokenEstimate(tokenizer)
      estimate.add(text)
      const error = estimate.tokens / (tokens[tokenizer] ?? Number.NaN) - 1
      assert.ok(Math.abs(error) <= 0.25, `${tokenizer}, ${name}: ${(error * 100).toFixed(1)} %`)
    }
  }
})

test('a long text is read in part, and an image counts nothing beside its texts', () => {
  const estimate = new TokenEstimate('openai')
  for (let n = 0; n < 1_000; n++) estimate.add(texts[0] ?? '')
  const one = golden.texts[0]?.tokens.openai ?? 0
  assert.ok(Math.abs(estimate.tokens / (1_000 * one) - 1) <= MOST)
  const url = `data:image/png;base64,${'A'.repeat(10_000)}`
  const content = [
    { type: 'image_url', image_url: { url } },
    { type: 'text', text: 'What is this?' },
  ]
  const image = {
    dialect: chat,
    request: { model: 'm', messages: [{ role: 'user', content }] },
    response: null,
    events: [],
  }
  assert.ok(estimated(image, [whole({ choices: [] })]).prompt < 20)
})
