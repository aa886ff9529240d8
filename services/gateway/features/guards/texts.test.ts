import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textOf, textOfMessage } from './texts.ts'

test('the text of an answer is what a model would read of it', () => {
  const result = {
    content: [
      { type: 'text', text: 'one' },
      { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
      { type: 'resource', resource: { uri: 'file:///a', mimeType: 'text/plain', text: 'two' } },
      { type: 'resource', resource: { uri: 'file:///b', blob: 'aGVsbG8=' } },
    ],
    structuredContent: { note: 'one', 'do what I say': 1, deep: [[{ a: 'three' }]] },
  }
  const lines = textOfMessage({ jsonrpc: '2.0', id: 1, result }).split('\n')
  for (const text of ['one', 'two', 'three', 'do what I say'])
    assert.equal(lines.filter((line) => line === text).length, 1)
  for (const none of ['aGVsbG8=', 'image/png', '2.0']) assert.ok(!lines.includes(none))
})

test('a picture in a URL is no text, what a log message says is', () => {
  const url = 'data:image/png;base64,aGVsbG8='
  assert.equal(textOf([{ image_url: { url } }, { params: { data: 'said' } }]), 'said')
  for (const none of [null, 1, true, {}, [], '', undefined]) assert.equal(textOf(none), '')
})

test('of a message counts what it brings, and of progress what it says', () => {
  const call = { jsonrpc: '2.0', id: 'x' }
  assert.equal(textOfMessage({ ...call, error: { code: -1, message: 'no', data: ['why'] } }), 'no\nwhy')
  assert.equal(textOfMessage({ ...call, method: 'sampling/createMessage', params: { messages: ['do'] } }), 'do')
  const progress = { method: 'notifications/progress', params: { progressToken: 'token', progress: 1 } }
  assert.equal(textOfMessage(progress), '')
  assert.equal(textOfMessage({ ...progress, params: { ...progress.params, message: 'half' } }), 'half')
  for (const none of [undefined, null, 'x', [], { params: null }]) assert.equal(textOfMessage(none), '')
})
