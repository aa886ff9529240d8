import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classifyInboundRequest } from '@modelcontextprotocol/server'
import fc from 'fast-check'
import { isDenial } from '../../call/index.ts'
import { KNOWN_REVISIONS } from './classify.ts'
import { decodeMirrored, encodeMirrored } from './headers.ts'
import { McpBody } from './message.ts'
import { classify, parseMessage } from './read.ts'

const VERSIONS = [undefined, '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']
const METHODS = ['initialize', 'ping', 'tools/list', 'tools/call', 'server/discover', 'notifications/cancelled']
const CAPABILITIES = [undefined, {}, 'none']
const NAMES = [undefined, 'add', 'other', '=?base64?YWRk?=', '=?base64?!?=']

interface Sent {
  readonly method: string
  readonly header: string | undefined
  readonly claim: string | undefined
  readonly capabilities: unknown
  readonly mcpMethod: string | undefined
  readonly mcpName: string | undefined
  readonly withId: boolean
}

/** Yields all combinations of the values above: 31,500 requests. */
function* everyRequest(): Generator<Sent> {
  for (const method of METHODS)
    for (const header of VERSIONS)
      for (const claim of VERSIONS)
        for (const capabilities of CAPABILITIES)
          for (const mcpMethod of [undefined, ...METHODS])
            for (const mcpName of NAMES)
              for (const withId of [true, false]) {
                yield { method, header, claim, capabilities, mcpMethod, mcpName, withId }
              }
}

function messageOf({ method, claim, capabilities: offered, withId }: Sent) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': claim,
    'io.modelcontextprotocol/clientCapabilities': offered,
  }
  const params = { name: 'add', ...((claim ?? offered) === undefined ? {} : { _meta: meta }) }
  return { jsonrpc: '2.0', ...(withId && { id: 1 }), method, params }
}

function ours(it: Sent): 'refused' | 'legacy' | 'modern' {
  const bytes = Buffer.from(JSON.stringify(messageOf(it)))
  const message = parseMessage(bytes)
  assert.ok(!isDenial(message))
  const headers = { 'mcp-protocol-version': it.header, 'mcp-method': it.mcpMethod, 'mcp-name': it.mcpName }
  const { request, verdict } = classify({
    bytes,
    message,
    server: 'notes',
    headers,
    shared: null,
    session: () => null,
    open: () => null,
    task: () => null,
    taskSession: () => null,
    revisions: () => KNOWN_REVISIONS,
  })
  return isDenial(verdict) ? 'refused' : request.era
}

function theirs(it: Sent): 'refused' | 'legacy' | 'modern' {
  const outcome = classifyInboundRequest({
    httpMethod: 'POST',
    body: JSON.parse(JSON.stringify(messageOf(it))),
    ...(it.header !== undefined && { protocolVersionHeader: it.header }),
    ...(it.mcpMethod !== undefined && { mcpMethodHeader: it.mcpMethod }),
    ...(it.mcpName !== undefined && { mcpNameHeader: it.mcpName }),
  })
  return outcome.kind === 'legacy' || outcome.kind === 'modern' ? outcome.kind : 'refused'
}

test('accepted messages have the era that the official SDK determines, and messages that the SDK refuses are refused', () => {
  const seen = new Set<string>()
  for (const sent of everyRequest()) {
    const [here, there] = [ours(sent), theirs(sent)]
    seen.add(here)
    if (here !== 'refused' && here !== there) assert.equal(here, there, JSON.stringify(sent))
  }
  assert.deepEqual([...seen].sort(), ['legacy', 'modern', 'refused'])
})

test('a mirrored header value decodes to the original text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const encoded = encodeMirrored(text)
      assert.match(encoded, /^[\x20-\x7e]*$/)
      assert.equal(decodeMirrored(encoded), text)
    }),
  )
  for (const bad of ['=?base64?YQ?=', '=?base64?YR==?=', '=?base64?!?=', '=?base64?/w==?=', '=?base64?YQ==']) {
    assert.equal(decodeMirrored(bad), null, bad)
  }
})

test('the bytes and the value of the arguments are the same part of the message', () => {
  for (const [text, args] of [
    ['{"params":{"arguments":{"a":[1,"x"]},"name":"add"},"arguments":{"a":2}}', { a: [1, 'x'] }],
    [String.raw`{"params":{"\u0061rguments":{"a":1}}}`, { a: 1 }],
    ['{"params":{"arguments":null}}', null],
    ['{"params":[{"arguments":1}]}', undefined],
    ['{"method":"tools/call"}', undefined],
  ] as const) {
    const body = new McpBody(Buffer.from(text), JSON.parse(text), true)
    assert.deepEqual(body.argsValue, args, text)
    assert.deepEqual(body.args === null ? undefined : JSON.parse(Buffer.from(body.args).toString()), args, text)
    const whole = new McpBody(body.bytes, body.value, false)
    assert.equal(whole.argsValue, whole.value)
    assert.equal(whole.args, whole.bytes)
  }
})

test('beside has inputs and free members of _meta, with exact numbers', () => {
  const beside = (params: string) => {
    const text = `{"params":${params}}`
    return JSON.stringify(new McpBody(Buffer.from(text), JSON.parse(text), true).beside)
  }
  const own = '"progressToken":1,"traceparent":"00","io.modelcontextprotocol/clientCapabilities":{}'
  assert.equal(beside('{"arguments":{}}'), undefined)
  assert.equal(beside(`{"arguments":{},"_meta":{${own}}}`), undefined)
  assert.equal(
    beside(`{"_meta":{${own},"acme/n":9007199254740993},"inputResponses":{"a":{"n":1.0}}}`),
    '{"inputResponses":{"a":{"n":1.0}},"_meta":{"acme/n":9007199254740993}}',
  )
  // An undefined name with the protocol's prefix is free.
  assert.equal(beside('{"_meta":{"io.modelcontextprotocol/x":1}}'), '{"_meta":{"io.modelcontextprotocol/x":1}}')
})

test('policies see all of _meta and the responses to server requests, in both eras', () => {
  const seen = (text: string, argumentsOnly: boolean) => {
    const { inputs, meta } = new McpBody(Buffer.from(text), JSON.parse(text), argumentsOnly)
    return [inputs, meta].map((bytes) => (bytes === null ? null : Buffer.from(bytes).toString()))
  }
  assert.deepEqual(seen('{"method":"tools/call"}', true), [null, null])
  assert.deepEqual(
    seen('{"method":"tools/call","params":{"_meta":{"progressToken":1},"inputResponses":{"a":{"n":1.0}}}}', true),
    ['{"a":{"n":1.0}}', '{"progressToken":1}'],
  )
  assert.deepEqual(seen('{"id":"p1.a\\"","result":{"action":"accept"}}', false), [
    '{"p1.a\\"":{"action":"accept"}}',
    null,
  ])
  assert.deepEqual(seen('{"id":5,"error":{"code":1,"message":"no"}}', false), ['{"5":{"code":1,"message":"no"}}', null])
})
