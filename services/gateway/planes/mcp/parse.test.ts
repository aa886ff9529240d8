import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classifyInboundRequest } from '@modelcontextprotocol/server'
import fc from 'fast-check'
import { isDenial } from '../../call/index.ts'
import { KNOWN_REVISIONS } from './classify.ts'
import { decodeMirrored, encodeMirrored } from './headers.ts'
import { classify, parseMessage } from './parse.ts'

const versions = fc.constantFrom(undefined, '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28')
const methods = fc.constantFrom(
  'initialize',
  'ping',
  'tools/list',
  'tools/call',
  'server/discover',
  'notifications/cancelled',
)
const capabilities = fc.constantFrom(undefined, {}, 'none')

interface Drawn {
  readonly method: string
  readonly header: string | undefined
  readonly claim: string | undefined
  readonly capabilities: unknown
  readonly mcpMethod: string | undefined
  readonly mcpName: string | undefined
  readonly withId: boolean
}

const drawn: fc.Arbitrary<Drawn> = fc.record({
  method: methods,
  header: versions,
  claim: versions,
  capabilities,
  mcpMethod: fc.option(methods, { nil: undefined }),
  mcpName: fc.constantFrom(undefined, 'add', 'other', '=?base64?YWRk?=', '=?base64?!?='),
  withId: fc.boolean(),
})

function messageOf({ method, claim, capabilities: offered, withId }: Drawn) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': claim,
    'io.modelcontextprotocol/clientCapabilities': offered,
  }
  const params = { name: 'add', ...((claim ?? offered) === undefined ? {} : { _meta: meta }) }
  return { jsonrpc: '2.0', ...(withId && { id: 1 }), method, params }
}

function ours(it: Drawn): 'refused' | 'legacy' | 'modern' {
  const bytes = Buffer.from(JSON.stringify(messageOf(it)))
  const message = parseMessage(bytes)
  assert.ok(!isDenial(message))
  const headers = { 'mcp-protocol-version': it.header, 'mcp-method': it.mcpMethod, 'mcp-name': it.mcpName }
  const { request, verdict } = classify({
    bytes,
    message,
    headers,
    session: () => null,
    open: () => null,
    spoken: () => KNOWN_REVISIONS,
  })
  return isDenial(verdict) ? 'refused' : request.era
}

function theirs(it: Drawn): 'refused' | 'legacy' | 'modern' {
  const outcome = classifyInboundRequest({
    httpMethod: 'POST',
    body: JSON.parse(JSON.stringify(messageOf(it))),
    ...(it.header !== undefined && { protocolVersionHeader: it.header }),
    ...(it.mcpMethod !== undefined && { mcpMethodHeader: it.mcpMethod }),
    ...(it.mcpName !== undefined && { mcpNameHeader: it.mcpName }),
  })
  return outcome.kind === 'legacy' || outcome.kind === 'modern' ? outcome.kind : 'refused'
}

test('what passes here belongs to the era that the official SDK reads, and what the SDK refuses never passes', () => {
  const seen = new Set<string>()
  fc.assert(
    fc.property(drawn, (it) => {
      const [here, there] = [ours(it), theirs(it)]
      seen.add(here)
      if (here !== 'refused') assert.equal(here, there)
    }),
    { numRuns: 3000 },
  )
  assert.deepEqual([...seen].sort(), ['legacy', 'modern', 'refused'])
})

test('a mirrored header value reads back as the text that it was made of', () => {
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
