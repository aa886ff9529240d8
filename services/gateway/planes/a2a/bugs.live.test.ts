import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { testCall, testTarget } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { Forwarding } from './forward.ts'
import { A2aBody, A2aRequest } from './request.ts'

test('an error of the gateway while reading a response is not reported as a failure of the agent', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const dialer = createDialer({ clock: systemClock, log: silentLog, allowedCIDRs: ['127.0.0.0/8'] })
  t.after(() => dialer.close())
  const bytes = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}')
  const call = testCall(
    { identity: testIdentity, target: testTarget, hold: null },
    { method: 'ListTasks', body: new A2aBody(bytes) },
  )
  const forwarder = {
    clock: systemClock,
    dialer,
    upstreamTimeoutMs: 60_000,
    extraCA: null,
    transactions: null,
    viewOf(): never {
      throw new TypeError('a bug')
    },
  }
  const place = {
    server: 'a2a/default/helper',
    endpoint: agent.url,
    timeoutSeconds: null,
    protocolVersion: '1.0',
  } as const
  const request = new A2aRequest({ method: 'ListTasks', bytes, idValue: 1 })
  // The runner converts the error to `internal` and logs it with the decision id.
  const forwarding = new Forwarding(forwarder, { call, request, agent: place, transaction: null, sent: false })
  await assert.rejects(forwarding.run(), { name: 'TypeError', message: 'a bug' })
})
