import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import type { ClientRequest, Fetched, Receiver } from '@plat/http'
import { LocalLimits } from '@plat/state'
import { type Call, isDenial, type Target } from '../call/index.ts'
import { testCall, testTarget } from '../call/testing/call.ts'
import { testIdentity } from '../call/testing/identity.ts'
import type { Plane } from '../pipeline/plane.ts'
import { setUp } from '../pipeline/runner/testing/fixture.ts'
import { recordedMetrics, testMetrics } from '../testing/metrics.ts'
import { Forwarding } from './a2a/forward.ts'
import { A2aBody, A2aRequest } from './a2a/request.ts'
import { createConnectPlane } from './connect/index.ts'
import { createExecPlane } from './exec/index.ts'
import { createInfraPlane } from './infra/index.ts'
import { chat } from './model/dialects/chat.ts'
import { createModelPlane, ResponseCache } from './model/index.ts'
import {
  alwaysClosed,
  bodyOf,
  endpointAt,
  noCredentials,
  noLatencies,
  noModels,
  noUploads,
  routeTo,
} from './model/testing.ts'

const clock = new TestClock()
const facts = { identity: testIdentity, target: testTarget, hold: null }

function fails(): never {
  throw new TypeError('a bug')
}

/** Response of a server, over a client that opens no connection. Null: the client itself has the bug. */
function clientOf(response: { readonly type: string; readonly body: string } | null) {
  return () => ({
    send(_: ClientRequest, receiver: Receiver) {
      queueMicrotask(() => {
        if (response === null) return receiver.onFailure(new TypeError('a bug'))
        receiver.onHead(200, { 'content-type': response.type })
        receiver.onData(Buffer.from(response.body))
        receiver.onEnd()
      })
      return { abort() {}, pause() {}, resume() {} }
    },
    destroy() {},
  })
}

type Forwards = () => ReturnType<Plane['forward']>

const reading = { maxBodyBytes: 10_000, bodyReadTimeoutMs: 60_000 }

function execForwards(fetchBytes: () => Promise<Fetched>): Forwards {
  const sandbox = () => ({ url: new URL('http://sandbox.example/exec'), key: null })
  const limits = { maxTimeoutSeconds: 10, maxOutputBytes: 1000 }
  const plane = createExecPlane({ ...reading, ...limits, clock, dialer: { fetchBytes }, sandbox })
  return () => plane.forward(testCall(facts, { body: { bytes: Buffer.from('{}'), value: {}, args: null } }), 'unsent')
}

function connectForwards(): Forwards {
  const plane = createConnectPlane({ clock, dialer: { connect: async () => fails() } })
  const wire = {
    method: 'CONNECT',
    path: 'site.example:443',
    query: '',
    headers: {},
    body: Readable.from([]),
    remote: '',
  }
  const call = testCall(facts, { wire })
  plane.read(call, testIdentity)
  return () => plane.forward(call, 'unsent')
}

function infraForwards(): Forwards {
  const plane = createInfraPlane({ clock, bodyReadTimeoutMs: 60_000, maxPlanBytes: 1000, answer: fails })
  return () => plane.forward(testCall(facts), 'unsent')
}

const modelTarget: Target = { ...testTarget, kind: 'model', key: 'r', server: 'llm/r', tool: 'm', trust: 'trusted' }
const COMPLETION = '{"choices":[]}'

/** A route of two endpoints; failures of endpoints are counted in `failed`. */
function modelForwards(
  client: ReturnType<typeof clientOf>,
  { stream = false, dialect = chat, failed = { count: 0 }, endpoints = 2 } = {},
): Forwards {
  const circuits = { ...alwaysClosed, failed: () => void failed.count++ }
  const [first, second] = [endpointAt('http://one.example/v1'), endpointAt('http://two.example/v1')]
  const plane = createModelPlane({
    contexts: { bind: () => null, busy() {} },
    ...{ ...reading, ...noUploads },
    clock,
    dialer: { client },
    attemptTimeoutMs: 60_000,
    extraCA: null,
    routes: {
      route: () => (endpoints === 1 ? routeTo(first) : routeTo(first, second)),
      credentials: noCredentials,
      directory: () => noModels,
      circuits,
      allows: () => true,
      inOrder: (_, route) => route.endpoints,
      balancer: noLatencies,
    },
    ids: systemIds(clock),
    cache: new ResponseCache({ maxBytes: 0, clock, metrics: testMetrics(), isRevoked: () => false }),
    residencyFault: () => null,
    metrics: recordedMetrics((name) => void (name.includes('failovers') && failed.count++)).metrics,
    affords: () => true,
    limits: new LocalLimits({ clock }),
  })
  const body = bodyOf({ model: 'm', messages: [], stream }, dialect)
  const call: Call<'identity' | 'target' | 'hold'> = testCall(
    { ...facts, target: modelTarget },
    { operation: 'model.generate', method: 'chat/completions', server: 'r', name: 'm', body },
  )
  return () => plane.forward(call, 'unsent')
}

function agentForwards(client: ReturnType<typeof clientOf>): Forwards {
  const bytes = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}')
  const forwarder = {
    clock,
    dialer: { client },
    upstreamTimeoutMs: 60_000,
    extraCA: null,
    transactions: null,
    viewOf: fails,
  }
  const agent = {
    server: 'a2a/default/helper',
    endpoint: 'http://helper.example/',
    timeoutSeconds: null,
    protocolVersion: '1.0',
  } as const
  const request = new A2aRequest({ method: 'ListTasks', bytes, idValue: 1 })
  const call = testCall(facts, { method: 'ListTasks', body: new A2aBody(bytes) })
  return () => new Forwarding(forwarder, { call, request, agent, transaction: null, sent: false }).run()
}

const buggy = { ...chat, answerFault: fails, events: { frame: fails, isPlain: () => false } }
const json = { type: 'application/json', body: COMPLETION }
const events = { type: 'text/event-stream', body: `data: ${COMPLETION}\n\n` }
const failed = { count: 0 }

const BUGS: Readonly<Record<string, Forwards>> = {
  'exec, while it calls the sandbox': execForwards(async () => fails()),
  'exec, while it reads the response': execForwards(async () => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    get bytes() {
      return fails()
    },
  })),
  'connect, while it opens the tunnel': connectForwards(),
  'infra, while it judges the plan': infraForwards(),
  'model, in the HTTP client': modelForwards(clientOf(null), { failed, endpoints: 1 }),
  'model, in the HTTP client, with a fallback': modelForwards(clientOf(null), { failed }),
  'model, while it reads a JSON response': modelForwards(clientOf(json), { failed, dialect: buggy }),
  'model, while it reads the first event': modelForwards(clientOf(events), { failed, dialect: buggy, stream: true }),
  'model, while it reads an event': modelForwards(clientOf(events), {
    failed,
    dialect: buggy,
    stream: true,
    endpoints: 1,
  }),
  'a2a, in the HTTP client': agentForwards(clientOf(null)),
  'a2a, while it reads the response': agentForwards(
    clientOf({ type: 'application/json', body: '{"jsonrpc":"2.0","id":1,"result":{"tasks":[{"id":"t"}]}}' }),
  ),
}

for (const [where, forward] of Object.entries(BUGS))
  test(`a bug of the gateway in ${where}, is internal, logged with the decision id, and no failure of the upstream`, async () => {
    const { done, records, logged, metrics } = setUp({ plane: { forward } })
    await done
    assert.deepEqual([records.at(-1)?.result, records.at(-1)?.code], ['failed', 'internal'])
    assert.equal(logged.length, 1)
    assert.match(logged[0] ?? '', /^(?:forwarding|reading the response) failed \{"call":"c1","error":"a bug"\}$/)
    assert.ok(!metrics.some((one) => one.startsWith('upstreamFailed')))
    assert.equal(failed.count, 0)
  })

/** Errors that a connection fails with, as their makers write them. */
const CODED = ['ECONNRESET', 'EPIPE', 'ERR_SSL_WRONG_VERSION_NUMBER', 'CERT_HAS_EXPIRED']

test('an error of the connection is a failure of the upstream still', async () => {
  for (const code of CODED) {
    const forward = execForwards(() => Promise.reject(Object.assign(new Error('x'), { code })))
    const reply = await forward()
    assert.ok(isDenial(reply) && reply.code === 'upstream_error', code)
  }
})
