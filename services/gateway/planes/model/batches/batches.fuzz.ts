import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../../test/fuzz/target.ts'
import { isDenial } from '../../../call/index.ts'
import { LineSplitter } from './lines.ts'
import { type BatchRequest, messageBatchFault, requestsOfBody, requestsOfFile } from './requests.ts'

const LIMITS = { endpoint: null, maxBytes: 400 }

const file = near([
  '{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[]}}\n',
  '{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"model":"m","input":"x"}}\r\n{"custom_id":"b","method":"POST","url":"/v1/embeddings","body":{"input":"y"}}',
  '{"body":{"stream":true},"url":"/v1/responses","method":"POST","custom_id":"\\u0061"}\n\n[]\n',
])
const body = near([
  '{"requests":[{"custom_id":"a","params":{"model":"m","max_tokens":1,"messages":[]}}]}',
  '{ "requests" : [ {"params":{"model":"m"},"custom_id":"a"} , {"custom_id":"a","params":{}} ] }',
  '{"requests":[],"metadata":{}}',
])

/** Splits a text at places that follow from a number. */
function chunksOf(text: string, size: number): readonly Uint8Array[] {
  const bytes = Buffer.from(text)
  const chunks: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size))
  return chunks
}

async function* streamOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}

async function allOf(requests: AsyncIterable<BatchRequest | object>): Promise<readonly (BatchRequest | object)[]> {
  return Array.fromAsync(requests)
}

const writtenOf = (one: BatchRequest | object) =>
  'written' in one ? Buffer.from(one.written(one.body.bytes)).toString() : JSON.stringify(one)

/** The text as UTF-8 has it. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString()
}

export const target = fuzzTarget('batches', {
  'the lines of a file are the same however it is divided': fc.property(
    file,
    fc.integer({ min: 1, max: 50 }),
    (text, size) => {
      const splitter = new LineSplitter(100_000)
      const lines = chunksOf(text, size).flatMap((chunk) => [...splitter.push(chunk)])
      const last = splitter.end()
      const read = [...lines, ...(last === null ? [] : [last])].map((line) => Buffer.from(line).toString())
      const expected = wellFormed(text)
        .split('\n')
        .map((line) => line.replace(/\r$/, ''))
      if (text.endsWith('\n') || text === '') expected.pop()
      assert.deepEqual(read, expected)
    },
  ),
  'a file is read or refused, the same however it is divided, and requests stay as they were written': fc.asyncProperty(
    file,
    fc.integer({ min: 1, max: 50 }),
    async (text, size) => {
      const whole = await allOf(requestsOfFile(streamOf(chunksOf(text, text.length + 1)), LIMITS))
      const divided = await allOf(requestsOfFile(streamOf(chunksOf(text, size)), LIMITS))
      assert.deepEqual(divided.map(writtenOf), whole.map(writtenOf))
      for (const one of whole) if ('written' in one) assert.ok(wellFormed(text).includes(writtenOf(one)))
      assert.ok(whole.slice(0, -1).every((one) => !isDenial(one)))
    },
  ),
  'a body is read or refused, and requests stay as they were written': fc.asyncProperty(body, async (text) => {
    const bytes = Buffer.from(text)
    if (messageBatchFault(bytes) !== null) return
    for (const one of await allOf(requestsOfBody(bytes)))
      if ('written' in one) assert.ok(wellFormed(text).includes(writtenOf(one)))
  }),
})
