import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { createDialer, type Dialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { LocalLimits } from '@plat/state'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { type Call, deny, type Frame, isDenial, type Target } from '../../call/index.ts'
import { testCall, testTarget } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import type { Plane } from '../../pipeline/plane.ts'
import { testMetrics } from '../../testing/metrics.ts'
import { createModelPlane, ResponseCache } from './index.ts'
import {
  alwaysClosed,
  bodyOf,
  endpointAt,
  noCredentials,
  noLatencies,
  noModels,
  noUploads,
  routeTo,
} from './testing.ts'

let upstream: ModelServer
let dialer: Dialer
let plane: Plane

before(async () => {
  upstream = await startModelServer()
  dialer = createDialer({ clock: systemClock, log: silentLog })
  plane = createModelPlane({
    contexts: { bind: () => null, busy() {} },
    dialer,
    clock: systemClock,
    maxBodyBytes: 10_000,
    bodyReadTimeoutMs: 60_000,
    ...noUploads,
    attemptTimeoutMs: 60_000,
    extraCA: null,
    routes: {
      route: () => routeTo(endpointAt(upstream.url)),
      credentials: noCredentials,
      circuits: alwaysClosed,
      directory: () => noModels,
      allows: () => true,
      inOrder: (_, { endpoints }) => endpoints,
      balancer: noLatencies,
    },
    ids: systemIds(systemClock),
    cache: new ResponseCache({ maxBytes: 0, clock: systemClock, metrics: testMetrics(), isRevoked: () => false }),
    residencyFault: () => null,
    metrics: testMetrics(),
    affords: () => true,
    limits: new LocalLimits({ clock: systemClock }),
  })
})

after(async () => {
  await dialer.close()
  await upstream.close()
})

const target: Target = { ...testTarget, kind: 'model', key: 'r', server: 'llm/r', tool: 'small-1', trust: 'trusted' }
const route = { operation: 'model.generate', method: 'chat/completions', server: 'r', name: 'small-1' } as const

function callOf(stream: boolean): Call<'identity' | 'target' | 'hold'> {
  const body = bodyOf({ model: 'small-1', messages: [], stream })
  return testCall({ identity: testIdentity, target, hold: null }, { ...route, body, pass: 2 })
}

async function textOf(call: ReturnType<typeof callOf>): Promise<string> {
  const reply = await plane.forward(call, 'sent')
  if (isDenial(reply) || reply.kind !== 'frames') return assert.fail('no frames')
  let text = ''
  for await (const part of reply.frames) {
    const batch: readonly Frame[] = 'role' in part ? [part] : part
    for (const frame of batch) text += frame.raw ?? ''
  }
  return text
}

test('a streamed call that waits for a person gets comments; any other waits without a head', () => {
  const held = plane.keepAlive(callOf(true), 'ap-1')
  assert.equal(held?.head.headers['content-type'], 'text/event-stream')
  const beat = held?.heartbeat()
  assert.equal(String(beat?.raw), ': waiting for approval\n\n')
  assert.equal(plane.keepAlive(callOf(false), 'ap-1'), null)
})

test('once a wait has opened the stream, the answer goes on as events, refusals too', async () => {
  upstream.answers({ text: ['Hello'] })
  assert.match(await textOf(callOf(true)), /"content":"Hello".*data: \[DONE\]\n\n$/s)
  upstream.answers({ text: [], error: { status: 429, message: 'slow\ndown' } })
  const refused = await textOf(callOf(true))
  assert.match(refused, /^data: \{"error":.*slow.*\}\n\n$/)
  const [last] = plane.abort(callOf(true), deny('revoked', 'this session is revoked')) ?? []
  assert.match(
    String(last?.raw),
    /^data: \{"error":\{"message":"The call of small-1 was refused: this session is revoked\..*","type":"permission_error".*\}\}\n\n$/,
  )
})

test('a body that is neither JSON nor an event stream is not a response', async () => {
  upstream.answers({ text: ['Hello'] })
  const reply = await plane.forward(callOf(false), 'sent')
  assert.ok(isDenial(reply) && reply.code === 'upstream_error')
})
