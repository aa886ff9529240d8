import { crc32 } from 'node:zlib'
import { runInSlices, withoutElements, withoutMembers } from '@plat/core'
import { costTarget, type Families, type Row } from '../../../test/fuzz/cost.ts'
import { json, text } from '../../../test/fuzz/families.ts'
import { isDenial, storedContent, type TextRedactor } from '../call/index.ts'
import { stepless } from '../call/testing/steps.ts'
import { execBody } from './exec/request.ts'
import { unseenPaths } from './mcp/capabilities.ts'
import { McpResponse } from './mcp/frames/response.ts'
import { decodeMirrored } from './mcp/headers.ts'
import { McpBody, parsedId } from './mcp/message.ts'
import { classify, parseMessage } from './mcp/read.ts'
import { chat } from './model/dialects/chat.ts'
import { messages } from './model/dialects/messages.ts'
import { responses } from './model/dialects/responses.ts'
import { InvalidResponseError } from './model/invalid.ts'
import { ChunkTexts } from './model/redact/chunk-texts.ts'
import { EventTexts } from './model/redact/event-texts.ts'
import { readModelBody } from './model/request.ts'
import { translatorOf } from './model/translate/all.ts'
import { AwsStreamSplitter } from './model/translate/aws-stream.ts'
import { readClaude } from './model/translate/claude-request.ts'
import { readMessages } from './model/translate/messages.ts'
import { UntranslatableError } from './model/translate/prompt.ts'
import { readResponses } from './model/translate/responses-request.ts'
import { eventData, eventId, SseSplitter, withEventData } from './wire/sse.ts'

const KIB = 1024
const MIB = 1024 * KIB
/** Largest body of a request, by default. Answers may be longer; what they take beside `JSON.parse` is the same part. */
const BODY = 4 * MIB
/** Largest piece in which bytes arrive. */
const SOCKET_CHUNK = 64 * KIB
/** Headers of a request together. */
const HEAD = 16 * KIB

const many = (n: number, size: number, each: (at: number) => string) =>
  Array.from({ length: n / size }, (_, at) => each(at)).join(',')

/** Members in the places where a protocol has its own. */
const within = (before: string, after: string): Families =>
  Object.fromEntries(Object.entries(json).map(([name, make]) => [name, (n: number) => before + make(n) + after]))

const events: Families = {
  'empty events': (n) => '\n'.repeat(n),
  'one line': (n) => `data: ${'a'.repeat(n)}\n\n`,
  lines: (n) => `${'data:\n'.repeat(n / 6)}\n`,
  comments: (n) => `${':\n'.repeat(n / 2)}\n`,
  ids: (n) => `${'id:a\n'.repeat(n / 5)}\n`,
  'carriage returns': (n) => '\r'.repeat(n),
  'never complete': (n) => 'a\r'.repeat(n / 2),
}

/** Reads the text in pieces of one byte: what was kept from piece to piece may not be copied again. */
function splitBytes(input: string): void {
  const splitter = new SseSplitter()
  const bytes = Buffer.from(input)
  for (let at = 0; at < bytes.length; at++) splitter.push(bytes.subarray(at, at + 1))
}

const tools = (n: number) => `{"jsonrpc":"2.0","id":1,"result":{"tools":[${'{"name":"a"},'.repeat(n / 13)}{}]}}`
const calls: Families = {
  ...within('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":', '}}'),
  'unknown members': (n) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",${many(n, 12, (at) => `"m${at}":1`)}}}`,
  'unknown escaped members': (n) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",${many(n, 18, (at) => `"\\u0061${at}":1`)}}}`,
  'free members of _meta': (n) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{${many(n, 12, (at) => `"m${at}":1`)}}}}`,
  'long name': (n) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${'a'.repeat(n)}"}}`,
  'long method': (n) => `{"jsonrpc":"2.0","id":1,"method":"${'a/'.repeat(n / 2)}"}`,
  batch: (n) => `[${'{"jsonrpc":"2.0","id":1,"method":"ping"},'.repeat(n / 41)}{}]`,
}

function classified(bytes: Uint8Array): void {
  const message = parseMessage(bytes)
  if (isDenial(message)) return
  const posted = {
    bytes,
    message,
    server: 'notes',
    headers: {},
    shared: null,
    session: () => null,
    revisions: () => [],
    task: () => null,
    catchUpTasks: () => null,
    taskSession: () => null,
    open: () => null,
  }
  const { verdict } = classify(posted)
  if (isDenial(verdict) || verdict.body === null) return
  const { args, argsValue } = verdict.body
  void [args, argsValue, verdict.body.beside]
}

/** Passes every piece on. */
const plainPieces = (): TextRedactor => ({ push: stepless, end: () => '' })
const unchanged = (bytes: Uint8Array) => bytes
const redactor = { steps: stepless, message: unchanged, pieces: plainPieces }

const mcpRows: readonly Row[] = [
  { parser: 'messages of MCP', limit: BODY, families: calls, run: (input) => classified(Buffer.from(input)) },
  {
    parser: 'messages of MCP',
    part: 'what goes upstream',
    limit: BODY,
    families: calls,
    prepare: (input) => {
      const bytes = Buffer.from(input)
      const value: { readonly params?: unknown } = JSON.parse(input)
      const paths = unseenPaths('tools/call', value.params)
      const body = new McpBody(bytes, value, true)
      return () => [body.args, withoutMembers(bytes, paths)]
    },
  },
  {
    parser: 'responses of MCP',
    limit: BODY,
    families: {
      ...within('{"jsonrpc":"2.0","id":1,"result":', '}'),
      tools,
      id: (n) => `{"jsonrpc":"2.0","id":"${'a'.repeat(n)}","result":{}}`,
    },
    run: (input) =>
      new McpResponse({ id: parsedId(Buffer.from('1')), method: 'tools/list', era: 'legacy' }).body(Buffer.from(input)),
  },
  {
    parser: 'lists of MCP',
    limit: BODY,
    families: { ...within('[', ']'), tools: (n) => `[${'{"name":"a"},'.repeat(n / 13)}{}]` },
    prepare: (input) => {
      JSON.parse(input)
      const bytes = Buffer.from(input)
      return () => withoutElements(bytes, 0, (index) => index % 2 === 0)
    },
  },
  {
    parser: 'names of stored content',
    limit: BODY,
    families: {
      ...within('[', ']'),
      ids: (n) => `[${'{"file_id":"a"},'.repeat(n / 16)}{}]`,
      lists: (n) => `[{"file_ids":[${'"a",'.repeat(n / 4)}""]}]`,
      addresses: (n) => `[{"url":"https://${'a'.repeat(n)}"},{"url":"${' '.repeat(n)}"}]`,
    },
    prepare: (input) => {
      const value: unknown = JSON.parse(input)
      return () => storedContent({ input: value })
    },
  },
  {
    parser: 'mirrored headers',
    limit: HEAD,
    families: { ...text, encoded: (n) => `=?base64?${'QUJD'.repeat(n / 4)}?=` },
    run: decodeMirrored,
  },
]

const awsMessage = (headers: number, payload: number) => {
  const total = 16 + headers + payload
  const bytes = Buffer.alloc(total)
  bytes.writeUInt32BE(total, 0)
  bytes.writeUInt32BE(headers, 4)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8)
  // Headers of no name and of type 0, which has no value.
  bytes.writeUInt32BE(crc32(bytes.subarray(0, total - 4)), total - 4)
  return bytes.toString('latin1')
}

const awsEvents: Families = {
  'empty messages': (n) => awsMessage(0, 0).repeat(n / 16),
  'one message': (n) => awsMessage(0, n - 16),
  'small headers': (n) => awsMessage(Math.min(128 * KIB, n - 16) & ~1, 0),
  zeros: (n) => '\0'.repeat(n),
}

function splitAws(input: string, size: number): void {
  const splitter = new AwsStreamSplitter()
  const bytes = Buffer.from(input, 'latin1')
  for (let at = 0; at < bytes.length; at += size) splitter.push(bytes.subarray(at, at + size))
}

const requests: Families = {
  ...within('{"model":"a","messages":[{"role":"user","content":"a"}],"x":', '}'),
  messages: (n) => `{"model":"a","messages":[${'{"role":"user","content":"a"},'.repeat(n / 30)}{}]}`,
  parts: (n) =>
    `{"model":"a","messages":[{"role":"user","content":[${'{"type":"text","text":"a"},'.repeat(n / 27)}{}]}]}`,
  tools: (n) => `{"model":"a","messages":[],"tools":[${'{"type":"function"},'.repeat(n / 20)}{}]}`,
}

const chunk = (choices: string) => `{"choices":[${choices}{}]}`
const chunks: Families = {
  choices: (n) => chunk('{"index":0,"delta":{"content":"a"}},'.repeat(n / 36)),
  'many choices': (n) =>
    chunk(`${many(n, 65, (at) => `{"index":${at},"delta":{"content":"a"},"finish_reason":"stop"}`)},`),
  'open choices': (n) => chunk(`${many(n, 42, (at) => `{"index":${at},"delta":{"content":"a"}}`)},`),
  'members of a choice': (n) => chunk(`{"index":0,"delta":{${many(n, 12, (at) => `"m${at}":"a"`)}}},`),
  'nested lists': (n) => chunk(`{"index":0,"delta":${'['.repeat(60)}${'"a",'.repeat(n / 4)}"b"${']'.repeat(60)}},`),
}

function orRefused(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    if (!(error instanceof UntranslatableError)) throw error
  }
}

const modelRows: readonly Row[] = [
  ...Object.entries({ chat, messages, responses }).map(
    ([part, dialect]): Row => ({
      parser: 'requests to models',
      part,
      limit: BODY,
      families: requests,
      run: (input) => readModelBody(Buffer.from(input), dialect),
    }),
  ),
  {
    parser: 'translation for models',
    limit: BODY,
    families: requests,
    prepare: (input) => {
      const { messages: all }: { readonly messages: unknown } = JSON.parse(input)
      return () => readMessages(all)
    },
  },
  {
    parser: 'translation for models',
    part: 'messages',
    limit: BODY,
    families: {
      ...requests,
      results: (n) =>
        `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"a","input":{}}]},{"role":"user","content":[${'{"type":"tool_result","tool_use_id":"c","content":"a"},'.repeat(n / 55)}{}]}]}`,
    },
    prepare: (input) => {
      const value = JSON.parse(input)
      return () => orRefused(() => readClaude(value, []))
    },
  },
  {
    parser: 'translation for models',
    part: 'responses',
    limit: BODY,
    families: {
      ...within('{"input":"a","x":', '}'),
      items: (n) => `{"input":[${'{"role":"system","content":"a"},'.repeat(n / 32)}{"role":"user","content":"a"}]}`,
      calls: (n) =>
        `{"input":[${'{"type":"function_call","call_id":"c","name":"a","arguments":"{}"},'.repeat(n / 66)}{"role":"user","content":"a"}]}`,
      images: (n) =>
        `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,${'A'.repeat(n)}"}]}]}`,
    },
    prepare: (input) => {
      const value = JSON.parse(input)
      return () => orRefused(() => readResponses(value, []))
    },
  },
  {
    parser: 'translation for models',
    part: 'answers',
    limit: BODY,
    families: {
      'long text': (n) => `{"choices":[{"message":{"content":"${'a'.repeat(n)}"},"finish_reason":"stop"}]}`,
      calls: (n) =>
        `{"choices":[{"message":{"tool_calls":[${many(n, 52, (at) => `{"id":"${at}","function":{"name":"a","arguments":"{}"}}`)}]},"finish_reason":"stop"}]}`,
    },
    prepare: (input) => {
      const bytes = Buffer.from(input)
      const facts = { id: 'a', model: 'a', created: 1 }
      return () => {
        try {
          translatorOf('openai', 'messages')?.answer(bytes, facts, {})
        } catch (error) {
          if (!(error instanceof InvalidResponseError)) throw error
        }
      }
    },
  },
  {
    parser: 'chunks of models',
    limit: BODY,
    families: chunks,
    prepare: (input) => {
      const value = JSON.parse(input)
      return async () => {
        const texts = new ChunkTexts(redactor)
        await runInSlices(texts.take(value))
        texts.end()
      }
    },
  },
  {
    parser: 'events of models',
    limit: BODY,
    families: {
      ...json,
      deltas: (n) => `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${'a'.repeat(n)}"}}`,
    },
    prepare: (input) => {
      const value = JSON.parse(input)
      const bytes = Buffer.from(input)
      return () => {
        const texts = EventTexts.of('messages', redactor)
        return texts === null ? null : runInSlices(texts.take(value, bytes))
      }
    },
  },
  {
    parser: 'event streams of AWS',
    limit: SOCKET_CHUNK,
    families: awsEvents,
    run: (input) => splitAws(input, SOCKET_CHUNK),
  },
  {
    parser: 'event streams of AWS',
    part: 'byte by byte',
    limit: SOCKET_CHUNK / 4,
    families: awsEvents,
    run: (input) => splitAws(input, 1),
  },
]

const wireRows: readonly Row[] = [
  {
    parser: 'server-sent events',
    limit: SOCKET_CHUNK,
    families: events,
    run: (input) => new SseSplitter().push(Buffer.from(input)),
  },
  { parser: 'server-sent events', part: 'byte by byte', limit: SOCKET_CHUNK / 4, families: events, run: splitBytes },
  {
    parser: 'server-sent events',
    part: 'one event',
    limit: 32 * MIB,
    families: events,
    prepare: (input) => {
      const event = Buffer.from(input)
      return () => [eventData(event), eventId(event), withEventData(event, Buffer.from('a'))]
    },
  },
  { parser: 'code for sandboxes', limit: BODY, families: json, run: (input) => execBody(Buffer.from(input), 300) },
]

export const target = costTarget('cost/gateway planes', [...mcpRows, ...modelRows, ...wireRows])
