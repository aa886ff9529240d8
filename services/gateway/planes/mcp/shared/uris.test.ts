import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { withSharedUris } from './uris.ts'

const shared = (method: string, json: string, prefix = 's') => {
  const bytes = Buffer.from(json)
  return Buffer.from(withSharedUris(bytes, JSON.parse(json), { method, prefix })).toString()
}

test('the URIs of a result get the prefix of their server, and every other byte stays as it was', () => {
  const contents = '{ "result": {"contents":[ {"\\u0075ri" : "a:\\/b","n":1.0e2}, {"text":"uri"} ,7], "uri":"a:" } }'
  assert.equal(shared('resources/read', contents), contents.replace('"a:\\/b"', '"mcp://s/a:\\/b"'))
  const block =
    '{"type":"resource","resource":{"uri":"a:/b"}},{"uri":"a:/c","type":"resource_link"},{"type":"text","uri":"a:/d"}'
  const prefixed = block.replace('a:/b', 'mcp://s/a:/b').replace('a:/c', 'mcp://s/a:/c')
  for (const method of ['tools/call', 'tasks/result'])
    assert.equal(shared(method, `{"result":{"content":[${block}]}}`), `{"result":{"content":[${prefixed}]}}`)
  assert.equal(
    shared('tasks/get', `{"result":{"result":{"content":[${block}]}}}`),
    `{"result":{"result":{"content":[${prefixed}]}}}`,
  )
  const messages = (blocks: string) =>
    `{"result":{"messages":[{"content":[${blocks}]},{"content":${blocks.split('},{')[0]}}},{"content":null}]}}`
  assert.equal(shared('prompts/get', messages(block)), messages(prefixed))
  assert.equal(shared('tools/list', contents), contents)
})

test('for any URI and prefix the client reads the URI behind the prefix of its server', () => {
  const character = fc.constantFrom('a', ':', '/', '"', '\\', '\n', 'é', '\u{1f600}')
  const uri = fc.array(character).map((characters) => characters.join(''))
  fc.assert(
    fc.property(fc.array(uri), fc.constantFrom('s', 'a.b', 'é"\\'), (uris, prefix) => {
      const json = JSON.stringify({ result: { contents: uris.map((each) => ({ uri: each, text: 'a' })) } })
      const read = JSON.parse(shared('resources/read', json, prefix)).result.contents
      assert.deepEqual(
        read,
        uris.map((each) => ({ uri: `mcp://${prefix}/${each}`, text: 'a' })),
      )
    }),
  )
})
