import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { closed, listening } from '@plat/testkit/local'
import { Circuits } from './circuits.ts'
import { endpointOf } from './endpoint.ts'
import { startProbes } from './probes.ts'

test('probes request the models of each endpoint with its key, open the circuit of a dead one and end the cooldown of a recovered one', async (t) => {
  // Shows D3.modelRouting.probeIntervalSeconds
  let status = 503
  const requests: string[] = []
  let arrived = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    response.writeHead(status).end()
    arrived.resolve()
    arrived = Promise.withResolvers()
  })
  const port = await listening(server)
  const clock = new TestClock()
  const dialer = createDialer({ log: silentLog })
  t.after(async () => {
    dialer.close()
    await closed(server)
  })
  const opened = { next: Promise.withResolvers<void>() }
  const respond = () => {
    opened.next.resolve()
    opened.next = Promise.withResolvers()
  }
  const circuits = new Circuits({ clock, failureThreshold: 2, cooldownMs: 60_000, open: respond, failed() {} })
  const entry = { upstream: `http://127.0.0.1:${port}/v1`, apiKeyFile: '/key' }
  const clouds = { awsRegion: '', awsSuffix: '' }
  const endpoint = endpointOf(
    { route: 'r', aliases: new Map(), isFallback: false, reasoning: undefined, clouds },
    entry,
  )
  const endpoints = () => [endpoint]
  const stop = startProbes({
    clock,
    dialer,
    extraCA: null,
    everyMs: 1000,
    circuits,
    endpoints,
    credentials: { headers: () => ({ authorization: 'Bearer sk-probe' }) },
  })
  for (let round = 0; round < 2; round++) {
    const failure = opened.next.promise
    await clock.advance(1000)
    await failure
    // The round ends one turn after its last response was counted.
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(circuits.isOpen(endpoint), true)
  status = 404
  const probed = arrived.promise
  await clock.advance(1000)
  await probed
  while (circuits.isOpen(endpoint)) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(new Set(requests), new Set(['GET /v1/models Bearer sk-probe']))
  stop()
  const before = requests.length
  await clock.advance(10_000)
  assert.equal(requests.length, before)
})
