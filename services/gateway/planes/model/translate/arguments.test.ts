import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAtOnce } from '@plat/core'
import fc from 'fast-check'
import { translatorOf } from './all.ts'
import { chunksOf, facts, sseEvent, streamed } from './testing.ts'
import { TranslatedBytes } from './translated.ts'
import type { Speech } from './translator.ts'

interface Call {
  readonly function: { readonly arguments: string }
}

const of = (speaks: Speech, method: string) => translatorOf(speaks, method) ?? assert.fail(speaks)
const answerOf = (speaks: Speech, method: string, response: string) =>
  Buffer.from(runAtOnce(of(speaks, method).answer(Buffer.from(response), facts, {}))).toString()

/** Arguments of a call with numbers that a double would change, and the same without white space. */
const exactArguments = fc
  .array(
    fc.tuple(
      fc.stringMatching(/^[a-z ]{1,4}$/),
      fc.stringMatching(/^-?[1-9]\d{16,40}(?:\.\d{1,30}0)?(?:e[+-]?\d{1,3})?$/),
    ),
  )
  .map((members) => {
    const written = members.map(([name, literal], at) => [`"${name}${at}"`, literal] as const)
    return {
      spaced: `{ ${written.map(([name, literal]) => `${name} :\n[ ${literal} ]`).join(' ,\t')} }`,
      compact: `{${written.map(([name, literal]) => `${name}:[${literal}]`).join()}}`,
    }
  })

/** Responses of providers with a text before each call, and members around the arguments. */
const wholeWithCalls: Readonly<Partial<Record<Speech, (all: readonly string[]) => string>>> = {
  gemini: (all) =>
    `{"candidates":[{"content":{"role":"model","parts":[${all.map((args) => `{"text":"a"},{"functionCall":{"id":"c","args":${args},"name":"pay"},"thoughtSignature":"eA=="}`)}]},"finishReason":"STOP"}],"x":[1.0]}`,
  anthropic: (all) =>
    `{"x":1.0,"content":[${all.map((args) => `{"type":"text","text":"a"}, {"type":"tool_use","id":"c","input":${args},"name":"pay"}`)}],"stop_reason":"tool_use"}`,
  converse: (all) =>
    `{"output":{"x":1.0,"message":{"content":[${all.map((args) => `{"text":"a"} ,{"toolUse":{"toolUseId":"c","input":${args},"name":"pay"}}`)}]}},"stopReason":"tool_use"}`,
}

test('numbers in the arguments of tool calls keep their digits in every API of callers, whole and streamed', () => {
  const speech = fc.constantFrom<Speech>('gemini', 'anthropic', 'converse')
  fc.assert(
    fc.property(speech, fc.array(exactArguments, { minLength: 1, maxLength: 3 }), (speaks, all) => {
      const response = wholeWithCalls[speaks]?.(all.map(({ spaced }) => spaced)) ?? assert.fail()
      const calls: readonly Call[] = JSON.parse(answerOf(speaks, 'chat/completions', response)).choices[0].message
        .tool_calls
      const expected = all.map(({ compact }) => compact)
      const texts = calls.map((call) => call.function.arguments)
      assert.deepEqual(texts, expected)
      for (const [method, name] of Object.entries({ messages: 'input', generateContent: 'args' })) {
        const answer = answerOf(speaks, method, response)
        for (const args of expected) assert.ok(answer.includes(`"${name}":${args}`), method)
      }
      if (speaks !== 'gemini') return
      const event = Buffer.from(`data: ${response.replaceAll('\n', ' ')}\n\n`)
      const chunks = chunksOf(streamed(of(speaks, 'chat/completions').stream(facts), [event]))
      const streamedCalls = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? [])
      assert.ok(expected.every((args) => JSON.stringify(streamedCalls).includes(JSON.stringify(args))))
    }),
  )
})

test('a stream that is translated in slices has all of its events in order, and then ends', async () => {
  const values = Array.from({ length: 300_000 }, (_, at) => at)
  const events = Array.from({ length: 2000 }, (_, at) => ({
    candidates: [{ content: { parts: [{ text: `${at} ` }] } }],
  }))
  const long = { candidates: [{ content: { parts: [{ functionCall: { name: 'pay', args: { values } } }] } }] }
  const end = { candidates: [{ finishReason: 'STOP' }] }
  const bytes = Buffer.concat([...events, long, ...events, end].map(sseEvent))
  const reads = [[bytes.subarray(0, 70_000), bytes.subarray(70_000, 90_000)], [], [bytes.subarray(90_000)]]
  const stream = () => of('gemini', 'chat/completions').stream(facts) ?? assert.fail()
  const source = { news: () => null, take: () => reads.shift() ?? null }
  const translated = new TranslatedBytes(source, stream())
  const pieces: Uint8Array[] = []
  for (let taken = translated.take(); taken !== null; taken = translated.take()) {
    pieces.push(...taken)
    await translated.news()
  }
  assert.equal(Buffer.concat(pieces).toString(), streamed(stream(), [bytes]))
})
