import assert from 'node:assert/strict'
import { crc32 } from 'node:zlib'
import { runAtOnce } from '@plat/core'
import { isDenial } from '../../../call/index.ts'
import { chat } from '../dialects/chat.ts'
import { readModelBody } from '../request.ts'
import type { ResponseFacts } from './response-parts.ts'
import type { StreamTranslator } from './streams.ts'
import type { Translator } from './translator.ts'

/** One message of an AWS event stream, put together by its published layout. */
export function awsMessage(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const [key, text] = [Buffer.from(name), Buffer.from(value)]
      const length = Buffer.alloc(2)
      length.writeUInt16BE(text.length)
      return Buffer.concat([Buffer.from([key.length]), key, Buffer.from([7]), length, text])
    }),
  )
  const body = Buffer.from(payload)
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(16 + head.length + body.length, 0)
  prelude.writeUInt32BE(head.length, 4)
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8)
  const all = Buffer.concat([prelude, head, body])
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(all))
  return Buffer.concat([all, sum])
}

/** An event of Bedrock. */
export function awsEvent(name: string, value: object): Buffer {
  const headers = { ':event-type': name, ':content-type': 'application/json', ':message-type': 'event' }
  return awsMessage(headers, JSON.stringify(value))
}

export const sseEvent = (value: object): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\r\n\r\n`)

export const facts: ResponseFacts = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'm' }

/** Returns the translated request for a chat completion, or the member that cannot be translated. */
export function translated(translator: Translator, value: object, model = 'm'): unknown {
  const body = readModelBody(Buffer.from(JSON.stringify(value)), chat)
  assert.ok(!isDenial(body), 'the request is readable')
  const bytes = translator.request({ body, model, reasoning: false, betas: null })
  return isDenial(bytes) ? bytes.data?.param : JSON.parse(Buffer.from(bytes).toString())
}

/** The text of a stream that came in these pieces. */
export function streamed(translator: StreamTranslator | null, pieces: readonly Uint8Array[]): string {
  assert.ok(translator !== null)
  return Buffer.concat([
    ...pieces.map((piece) => runAtOnce(translator.push(piece))),
    runAtOnce(translator.end()),
  ]).toString()
}

interface Chunk {
  readonly choices: readonly {
    readonly delta: Readonly<Record<string, unknown>>
    readonly finish_reason: string | null
  }[]
  readonly usage?: object
}

/** The chunks of a streamed chat completion, without `[DONE]`, which has to be the last event. */
export function chunksOf(text: string): readonly Chunk[] {
  const events = text.split('\n\n').slice(0, -1)
  assert.equal(events.at(-1), 'data: [DONE]')
  return events.slice(0, -1).map((event) => JSON.parse(event.replace(/^data: /, '')))
}
