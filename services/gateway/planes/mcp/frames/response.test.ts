import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asksForWithheld } from '../capabilities.ts'
import { parsedId } from '../message.ts'
import { InvalidResponseError, McpResponse } from './response.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')
const event = (text: string) => bytes(`data: ${text}\n\n`)
const expecting = (method = 'ping', id: string | null = '7', era: 'legacy' | 'modern' = 'modern') =>
  new McpResponse({ id: id === null ? null : parsedId(bytes(id)), method, era })

const HOSTILE = [
  ['{"jsonrpc":"2.0","id":8,"result":{}}', 'another id'],
  ['{"jsonrpc":"2.0","id":"7","result":{}}', 'the same id as another JSON type'],
  ['{"jsonrpc":"2.0","result":{}}', 'no id'],
  ['{"jsonrpc":"2.0","id":null,"result":{}}', 'the id null'],
  ['{}', 'an empty object'],
  ['[]', 'a batch'],
  ['{"jsonrpc":"2.0","id":7}', 'neither result nor error'],
  ['{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}', 'both result and error'],
  ['{"jsonrpc":"2.0","id":7,"result":{},"result":{}}', 'two results'],
  ['{"jsonrpc":"2.0","id":8,"id":7,"result":{}}', 'two ids'],
  ['{"jsonrpc":"2.0","id":7,"result":{}} {}', 'trailing data'],
  ['{"jsonrpc":"2.0","id":7,"result":{"a":"\xff"}}', 'invalid UTF-8'],
  ['{"jsonrpc":"2.0","id":7,"result":{"key":secret}}', 'an unquoted value'],
  ['{"jsonrpc":"1.0","id":7,"result":{}}', 'JSON-RPC 1.0'],
  ['{"id":7,"result":{}}', 'no JSON-RPC version'],
  ['{"jsonrpc":"2.0","id":7,"result":[]}', 'a result that is not an object'],
  ['{"jsonrpc":"2.0","id":7,"error":"no"}', 'an error that is not an object'],
  ['{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}', 'a method and a result'],
  ['{"jsonrpc":"2.0","id":7,"method":1}', 'a method that is not a string'],
] as const

for (const [text, what] of HOSTILE) {
  test(`a response with ${what} is refused, as a body and in a stream`, () => {
    assert.throws(() => expecting().body(bytes(text)), InvalidResponseError)
    assert.throws(() => expecting().event(event(text)), InvalidResponseError)
  })
}

test('the id of a response must have the type and the value of the request id, however it is written', () => {
  const response = (own: string, other: string) => {
    try {
      return expecting('ping', own).body(bytes(`{"result":{},"jsonrpc":"2.0","id":${other}}`)).role
    } catch (error) {
      assert.ok(error instanceof InvalidResponseError)
      return 'refused'
    }
  }
  const same = [
    ['7', '7.0'],
    ['"x"', '"\\u0078"'],
    ['9007199254740993', '9007199254740993'],
    ['1.5', '15e-1'],
  ] as const
  for (const [own, other] of same) assert.equal(response(own, other), 'final', `${own} ${other}`)
  assert.equal(response('9007199254740993', '9007199254740992'), 'refused')
  assert.equal(response('1', 'true'), 'refused')
})

test('a stream has one response; the members of a message determine its kind', () => {
  const response = expecting('ping', '7', 'legacy')
  const roles = [
    [': nothing', 'progress'],
    ['id: 1\ndata:', 'progress'],
    ['data: {"jsonrpc":"2.0","method":"x"}', 'progress'],
    ['data: {"jsonrpc":"2.0","id":7,"m\\u0065thod":"x"}', 'request'],
    ['data: {"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m","data":{"method":"x"}}}', 'final'],
  ] as const
  for (const [text, role] of roles) {
    assert.equal(response.complete, false)
    assert.equal(response.event(bytes(`${text}\n\n`)).role, role, text)
  }
  assert.equal(response.complete, true)
  assert.throws(() => response.event(event('{"jsonrpc":"2.0","id":7,"result":{}}')), InvalidResponseError)
})

test('a request in a stream of 2026-07-28 is invalid', () => {
  for (const id of ['7', null])
    for (const method of ['roots/list', 'ping', 'x'])
      assert.throws(
        () => expecting('tools/call', id).event(event(`{"jsonrpc":"2.0","id":1,"method":"${method}"}`)),
        InvalidResponseError,
      )
})

test('a response without a request is invalid', () => {
  const response = expecting('GET', null)
  assert.equal(response.complete, true)
  assert.throws(() => response.event(event('{"jsonrpc":"2.0","id":7,"result":{}}')), InvalidResponseError)
  assert.equal(response.event(event('{"jsonrpc":"2.0","method":"x"}')).role, 'progress')
})

test('an error status must have a JSON-RPC error, with the request id or without an id', () => {
  const error = (id: string) => `{"jsonrpc":"2.0"${id},"error":{"code":-32001,"message":"no session"}}`
  for (const id of [',"id":7', ',"id":null', '']) assert.equal(expecting().errorBody(bytes(error(id))).role, 'error')
  for (const text of [error(',"id":8'), '{"jsonrpc":"2.0","id":7,"result":{}}', '{"error":"no session"}', 'no session'])
    assert.throws(() => expecting().errorBody(bytes(text)), InvalidResponseError, text)
})

test('the parts of a result on which reviews and clients depend are validated', () => {
  const refused = [
    ['tools/list', '{}'],
    ['tools/list', '{"tools":{}}'],
    ['tools/list', '{"tools":[{"name":1}]}'],
    ['tools/list', '{"tools":[],"nextCursor":1}'],
    ['prompts/list', '{"prompts":[1]}'],
    ['resources/list', '{"resources":[{"name":"a"}]}'],
    ['resources/templates/list', '{"resources":[]}'],
    ['tools/call', '{"content":"text"}'],
    ['tools/call', '{"content":[],"isError":"true"}'],
    ['tools/call', '{"inputRequests":[]}'],
    ['tools/call', '{"requestState":{}}'],
    ['prompts/get', '{}'],
    ['resources/read', '{"contents":{}}'],
    ['initialize', '{"capabilities":{}}'],
    ['initialize', '{"protocolVersion":"2025-06-18","capabilities":{},"instructions":[]}'],
    ['server/discover', '{"supportedVersions":"2026-07-28","capabilities":{}}'],
  ] as const
  for (const [method, result] of refused) {
    const message = bytes(`{"jsonrpc":"2.0","id":7,"result":${result}}`)
    assert.throws(() => expecting(method).body(message), InvalidResponseError, `${method} ${result}`)
  }
  const accepted = [
    ['tools/list', '{"tools":[{"name":"a"}],"nextCursor":"b"}'],
    ['tools/call', '{"structuredContent":{}}'],
    ['prompts/get', '{"resultType":"input_required","inputRequests":{}}'],
    ['completion/complete', '{"completion":{"values":[]}}'],
  ] as const
  for (const [method, result] of accepted)
    assert.equal(expecting(method).body(bytes(`{"jsonrpc":"2.0","id":7,"result":${result}}`)).role, 'final')
})

test('a task and requests for input that the client did not offer are detected, however they are written', () => {
  const asks = (result: string, capabilities: object) => {
    const request = { params: { _meta: { 'io.modelcontextprotocol/clientCapabilities': capabilities } } }
    return asksForWithheld(expecting().body(bytes(`{"jsonrpc":"2.0","id":7,"result":${result}}`)), request)
  }
  for (const task of ['"task"', '"\\u0074ask"']) assert.ok(asks(`{"resultType":${task}}`, {}))
  const input = '{"inputRequest\\u0073":{"a":{"method":"elicitation/create"}}}'
  assert.ok(asks(input, {}))
  assert.ok(!asks(input, { elicitation: {} }))
  assert.ok(!asks('{"resultType":"complete","text":"task"}', {}))
})
