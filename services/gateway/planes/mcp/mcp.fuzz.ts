import assert from 'node:assert/strict'
import { checkJson } from '@plat/core'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { isDenial } from '../../call/index.ts'
import { eventData, SseSplitter, withEventData } from '../wire/sse.ts'
import { KNOWN_REVISIONS } from './classify.ts'
import { InvalidResponseError, McpResponse } from './frames/response.ts'
import { idOf, parsedId, withValue } from './message.ts'
import { classify, parseMessage } from './read.ts'

const message = near([
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":1},"_meta":{"progressToken":1}}}',
  '{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"capabilities":{"sampling":{},"roots":{}}}}',
  '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}',
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}',
  '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
  '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"p1.AA"}}',
])
const whole = fc.constantFrom(
  '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  '{"jsonrpc":"2.0","id":null,"method":"ping","params":[]}',
  '{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":1}}',
  '{"jsonrpc":"2.0","id":1,"method":"__proto__","params":{"_meta":null}}',
)
const headerValue = fc.option(
  fc.oneof(fc.constantFrom('2026-07-28', '2025-06-18', 'tools/call', '=?base64?YQ==?='), fc.string({ maxLength: 12 })),
  { nil: undefined },
)
const headers = fc.record({ 'mcp-protocol-version': headerValue, 'mcp-method': headerValue, 'mcp-name': headerValue })

const lines = near([
  'data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n',
  'id: 1\r\nretry: 5\r\ndata: \r\n\r\n',
  ': c\r\r',
])
const stream = fc.oneof(
  lines.map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 80 }),
)

function events(bytes: Uint8Array, size: number): Uint8Array[] {
  const splitter = new SseSplitter()
  const found: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += size) found.push(...splitter.push(bytes.subarray(at, at + size)))
  return [...found, ...splitter.end()]
}

const HOSTILE = [
  '{"jsonrpc":"2.0","id":7,"result":{}}',
  '{"jsonrpc":"2.0","id":"7","result":{"content":[],"tools":[]}}',
  '{"jsonrpc":"2.0","id":9007199254740993,"result":{}}',
  '{"jsonrpc":"2.0","id":9007199254740992,"result":{}}',
  '{"jsonrpc":"2.0","id":8,"result":{}}',
  '{"jsonrpc":"2.0","result":{}}',
  '{}',
  '{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}',
  '{"jsonrpc":"2.0","id":7,"result":{},"result":{}}',
  '{"jsonrpc":"2.0","id":7,"result":{}}{}',
  '{"jsonrpc":"2.0","id":7,"result":{"a":"\xff"}}',
  '{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}',
  '{"jsonrpc":"2.0","method":"notifications/message","params":{}}',
  '{"jsonrpc":"2.0","id":7,"method":"roots/list","result":{}}',
] as const
const hostile = fc.constantFrom(...HOSTILE)

/** Returns the result of `read`, or null when it throws an InvalidResponseError. */
function accepted<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    assert.ok(error instanceof InvalidResponseError, String(error))
    return null
  }
}

/** Checks a response to the request `id` with an independent parser. */
function assertResponse(json: Uint8Array, id: string): void {
  checkJson(json)
  const message = JSON.parse(Buffer.from(json).toString('utf8'))
  assert.equal(message.jsonrpc, '2.0')
  assert.equal(message.id, JSON.parse(id))
  assert.notEqual(Object.hasOwn(message, 'result'), Object.hasOwn(message, 'error'))
  assert.ok(!Object.hasOwn(message, 'method'))
}

export const target = fuzzTarget('mcp', {
  'any message is classified or refused, and its parts are bytes of it': fc.property(
    fc.oneof(message, whole),
    headers,
    (text, given) => {
      const bytes = Buffer.from(text)
      const parsed = parseMessage(bytes)
      if (isDenial(parsed)) return
      const posted = {
        bytes,
        message: parsed,
        server: 'notes',
        headers: given,
        shared: null,
        session: () => null,
        open: () => null,
        task: () => null,
        catchUpTasks: () => null,
        taskSession: () => null,
        revisions: () => KNOWN_REVISIONS,
      }
      const { request, verdict } = classify(posted)
      if (isDenial(verdict)) return
      assert.ok(request.method !== '' || request.kind === 'answer')
      const id = idOf(request)
      if (id !== null) assert.ok(bytes.includes(Buffer.from(id)))
    },
  ),
  'what was sealed is put back as the server wrote it, and the message stays strict JSON': fc.property(
    fc.oneof(message, whole),
    fc.constantFrom('12345678901234567890', '"s"', '-1e400'),
    (text, id) => {
      const bytes = Buffer.from(text)
      const parsed = parseMessage(bytes)
      if (isDenial(parsed)) return
      const origin = { call: 'c', operation: 'mcp.call', method: 'tools/call', tool: 'a' } as const
      const open = () => ({ id, target: 't', origin })
      const posted = {
        bytes,
        message: parsed,
        server: 'notes',
        headers: {},
        shared: null,
        session: () => null,
        open,
        task: () => null,
        catchUpTasks: () => null,
        taskSession: () => null,
        revisions: () => KNOWN_REVISIONS,
      }
      for (const { path, with: value } of classify(posted).request.replaced) {
        const rewritten = withValue(bytes, path, value)
        checkJson(rewritten)
        assert.ok(Buffer.from(rewritten).includes(id))
      }
    },
  ),
  'any bytes split into the same events, however they are cut': fc.property(
    stream,
    fc.integer({ min: 1, max: 9 }),
    (bytes, size) => {
      const [once, cut] = [events(bytes, bytes.length + 1), events(bytes, size)]
      assert.deepEqual(cut.map(Buffer.from), once.map(Buffer.from))
    },
  ),
  'only the response to the request passes, once, as a body and as an event': fc.property(
    fc.oneof(hostile, near([...HOSTILE])),
    fc.constantFrom('7', '"7"', '9007199254740993'),
    fc.constantFrom('ping', 'tools/call', 'tools/list', 'initialize', 'prompts/get'),
    fc.constantFrom('legacy' as const, 'modern' as const),
    (text, id, method, era) => {
      const json = Buffer.from(text, 'latin1')
      const expected = { id: parsedId(Buffer.from(id)), method, era }
      const body = accepted(() => new McpResponse(expected).body(json))
      if (body !== null) assertResponse(json, id)
      const response = new McpResponse(expected)
      const one = /[\r\n]/.test(text)
        ? null
        : accepted(() => response.event(Buffer.from(`data: ${text}\n\n`, 'latin1')))
      if (one?.role !== 'final') return
      assertResponse(json, id)
      assert.ok(response.complete)
      assert.equal(
        accepted(() => response.event(one.raw)),
        null,
      )
    },
  ),
  'other data replaces the data of an event alone': fc.property(stream, (bytes) => {
    for (const event of events(bytes, 7)) {
      const response = new McpResponse({ id: parsedId(Buffer.from('1')), method: 'ping', era: 'legacy' })
      const frame = accepted(() => response.event(event))
      assert.ok(frame === null || ['progress', 'request', 'final'].includes(frame.role))
      const had = eventData(event) !== null
      const changed = eventData(withEventData(event, Buffer.from('new')))
      assert.equal(changed === null ? null : Buffer.from(changed).toString(), had ? 'new' : null)
    }
  }),
})
