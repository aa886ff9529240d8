import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openaiWire } from '../testing.ts'
import { Addresses } from './endpoint.ts'

const chat = { method: 'chat/completions', name: 'm', operation: 'model.generate', body: null } as const
const models = { method: 'models', name: null, operation: 'model.info', body: null } as const
const model = { ...models, name: 'vendor/m:free' }

/** Where the path of a URL ends in its query, so does what is added to it. */
const UPSTREAMS = ['https://a.example/v1', 'https://b.example:8443/v1', 'http://127.0.0.1:1/x/../v1?key=1&to=']

test('each upstream and each endpoint has its own address, the first time and later', () => {
  const addresses = new Addresses()
  for (const [way, added] of [...UPSTREAMS, ...UPSTREAMS].flatMap((upstream) => [
    [{ upstream, call: chat }, '/chat/completions'] as const,
    [{ upstream, call: models }, '/models'] as const,
    [{ upstream, call: model }, '/models/vendor/m:free'] as const,
  ])) {
    const { origin, pathname, search } = new URL(way.upstream + added)
    assert.deepEqual(addresses.of({ upstream: way.upstream, wire: openaiWire }, way.call, 'm'), {
      origin,
      path: pathname + search,
    })
  }
  const upstream = 'https://a.example/v1'
  const other = { upstream, wire: { ...openaiWire, pathOf: () => '/messages' } }
  assert.equal(addresses.of(other, chat, 'm').path, '/v1/messages', 'another provider at the same address')
  assert.throws(() => addresses.of({ upstream: 'no address', wire: openaiWire }, chat, 'm'), TypeError)
})
