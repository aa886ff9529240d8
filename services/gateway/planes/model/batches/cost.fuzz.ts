import { Slices } from '@plat/core'
import { costTarget, type Families, type Row } from '../../../../../test/fuzz/cost.ts'
import { json } from '../../../../../test/fuzz/families.ts'
import { isDenial } from '../../../call/index.ts'
import { LineSplitter } from './lines.ts'
import { type BatchRequest, messageBatchFault, requestsOfBody, requestsOfFile } from './requests.ts'

/** Largest body of a request, by default, and so of a line, in bytes. */
const BODY = 4 * 1024 * 1024
/** Bytes that a file is read by. */
const CHUNK = 64 * 1024
/** Bytes of lines that are split alone: without a limit of the file, a part of it that is long enough to measure. */
const LINES = 1024 * 1024
/** Bytes that arrive one by one, which takes a call for each. */
const SINGLE_BYTES = 256 * 1024
const URL = '/v1/chat/completions'

const requestOf = (id: string, body: string) => `{"custom_id":"${id}","method":"POST","url":"${URL}","body":${body}}`
const entryOf = (id: string, params: string) => `{"custom_id":"${id}","params":${params}}`

/** As many texts as `n` characters have room for. */
function many(n: number, each: (at: number) => string): readonly string[] {
  return Array.from({ length: Math.max(1, Math.floor(n / each(0).length)) }, (_, at) => each(at))
}

const lines: Families = {
  'short lines': (n) => 'a\n'.repeat(n / 2),
  'empty lines': (n) => '\n'.repeat(n),
  'returns before line feeds': (n) => '\r\n'.repeat(n / 2),
  'returns without line feeds': (n) => '\r'.repeat(n),
  'one line': (n) => 'a'.repeat(n),
  'long lines': (n) => `${'a'.repeat(4000)}\n`.repeat(n / 4001),
}

const files: Families = {
  requests: (n) => many(n, (at) => requestOf(`r${at}`, '{"model":"m","messages":[]}')).join('\n'),
  'long ids': (n) => many(n, (at) => requestOf(`${'r'.repeat(50)}${at}`, '{"model":"m"}')).join('\n'),
  'the same ids': (n) => many(n, () => requestOf('r', '{"model":"m","messages":[]}')).join('\n'),
  messages: (n) => requestOf('r', `{"model":"m","messages":[${'{"role":"user","content":"a"},'.repeat(n / 30)}{}]}`),
  'members beside': (n) => `{${many(n, (at) => `"m${at}":1`).join(',')}}`,
  ...Object.fromEntries(
    Object.entries(json).map(([family, make]) => [`${family} in a body`, (n: number) => requestOf('r', make(n))]),
  ),
}

const bodies: Families = {
  requests: (n) => `{"requests":[${many(n, (at) => entryOf(`r${at}`, '{"model":"m","max_tokens":1}')).join(',')}]}`,
  'the same ids': (n) => `{"requests":[${many(n, () => entryOf('r', '{"model":"m","max_tokens":1}')).join(',')}]}`,
  'empty requests': (n) => `{"requests":[${'{},'.repeat(n / 3)}{}]}`,
  messages: (n) =>
    `{"requests":[${entryOf('r', `{"model":"m","messages":[${'{"role":"user","content":"a"},'.repeat(n / 30)}{}]}`)}]}`,
  ...Object.fromEntries(
    Object.entries(json).map(([family, make]) => [`${family} in requests`, (n: number) => `{"requests":${make(n)}}`]),
  ),
}

function* chunksOf(text: string, size: number): Generator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** Reads as the judge does: in slices, to the first denial. */
async function readAll(requests: AsyncIterable<BatchRequest | object>): Promise<void> {
  const slices = new Slices()
  for await (const request of requests) {
    if (isDenial(request)) return
    if (slices.isOver) await slices.next()
  }
}

function splitRow(part: string, limit: number, size: number): Row {
  return {
    ...{ parser: 'lines of batches', part, limit, families: lines },
    async run(input) {
      const slices = new Slices()
      const splitter = new LineSplitter(BODY)
      for (const chunk of chunksOf(input, size)) {
        for (const _ of splitter.push(chunk));
        if (slices.isOver) await slices.next()
      }
      splitter.end()
    },
  }
}

const rows: readonly Row[] = [
  splitRow('chunks', LINES, CHUNK),
  splitRow('single bytes', SINGLE_BYTES, 1),
  {
    ...{ parser: 'requests of batches', part: 'file', limit: BODY, families: files },
    run: (input) =>
      readAll(
        requestsOfFile(
          (async function* () {
            yield* chunksOf(input, CHUNK)
          })(),
          { endpoint: null, maxBytes: BODY },
        ),
      ),
  },
  {
    ...{ parser: 'requests of batches', part: 'body', limit: BODY, families: bodies },
    async run(input) {
      const bytes = Buffer.from(input)
      if (messageBatchFault(bytes) === null) await readAll(requestsOfBody(bytes))
    },
  },
]

export const target = costTarget('cost/gateway batches', rows)
