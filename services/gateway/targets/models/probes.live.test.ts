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

test('probes ask each endpoint for its models with its key, open the circuit of a dead one and let a revived one be tried', async (t) => {
  // Shows D3.modelRouting.probeIntervalSeconds
  let status = 503
  const asked: string[] = []
  let arrived = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`)
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
  const told = { next: Promise.withResolvers<void>() }
  const tell = () => {
    told.next.resolve()
    told.next = Promise.withResolvers()
  }
  const circuits = new Circuits({ clock, failureThreshold: 2, cooldownMs: 60_000, open: tell, failed() {} })
  const entry = { upstream: `http://127.0.0.1:${port}/v1`, apiKeyFile: '/key' }
  const endpoint = endpointOf(
    { route: 'r', aliases: new Map(), isFallback: false, clouds: { awsRegion: '', awsSuffix: '' } },
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
    const failure = told.next.promise
    await clock.advance(1000)
    await failure
    // The round is over one turn after its last answer was counted.
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(circuits.isOpen(endpoint), true)
  status = 404
  const probed = arrived.promise
  await clock.advance(1000)
  await probed
  while (circuits.isOpen(endpoint)) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(new Set(asked), new Set(['GET /v1/models Bearer sk-probe']))
  stop()
  const before = asked.length
  await clock.advance(10_000)
  assert.equal(asked.length, before)
})
