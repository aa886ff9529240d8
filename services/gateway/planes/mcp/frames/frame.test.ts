import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { asksForWithheld } from '../capabilities.ts'
import { McpFrame } from './frame.ts'

const body = (text: string) => McpFrame.body('final', Buffer.from(text))

/** A JSON string in any of its spellings. */
function spelt(text: string): fc.Arbitrary<string> {
  const written = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
  const escaped = fc
    .nat({ max: text.length - 1 })
    .map((at) => text.slice(0, at) + written(text.charAt(at)) + text.slice(at + 1))
  return fc.oneof(fc.constant(text), escaped).map((spelling) => `"${spelling}"`)
}

/** The member by which a message is more than a plain answer. */
const more = fc.oneof(
  spelt('method').map((name) => `${name}:"ping","result":{}`),
  spelt('inputRequests').map((name) => `"result":{"content":[],${name} :{}}`),
  spelt('requestState').map((name) => `"result":{"é":"ü",${name}:"s"}`),
  spelt('task').map((word) => `"result":{"resultType": ${word}}`),
)

test('a message is plain only without anything that makes it more than an answer, however that is spelt', () => {
  fc.assert(fc.property(more, (member) => assert.equal(body(`{"jsonrpc":"2.0",${member}}`).isPlain, false)))
  const text = { type: 'text', text: 'a "method" for each task, "requestState": none\n' }
  assert.ok(body(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [text] } })).isPlain)
})

test('the role of a message is what its members say', () => {
  const roles = [
    ['{"id":1,"result":{}}', 'final'],
    ['{"id":1,"error":{"data":{"method":"x"}}}', 'final'],
    ['{"method":"x"}', 'progress'],
    ['{"id":1,"method":"x"}', 'request'],
    ['{"id":1,"m\\u0065thod":"x"}', 'request'],
    ['{"method":', 'final'],
  ] as const
  for (const [text, role] of roles) {
    assert.equal(body(text).saidRole, role, text)
    assert.equal(McpFrame.event(Buffer.from(`data: ${text}\n\n`)).role, role, text)
  }
  assert.equal(McpFrame.event(Buffer.from(': nothing\n\n')).role, 'progress')
})

test('a task and input that was not offered are found, however they are spelt', () => {
  const asks = (text: string, capabilities: object) => {
    const request = { params: { _meta: { 'io.modelcontextprotocol/clientCapabilities': capabilities } } }
    return asksForWithheld(body(text), request)
  }
  for (const task of ['"task"', '"\\u0074ask"']) assert.ok(asks(`{"result":{"resultType":${task}}}`, {}))
  const input = '{"result":{"inputRequest\\u0073":{"a":{"method":"elicitation/create"}}}}'
  assert.ok(asks(input, {}))
  assert.ok(!asks(input, { elicitation: {} }))
  assert.ok(!asks('{"result":{"resultType":"complete","text":"task"}}', {}))
})
