import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { JsonObject } from '@plat/core'
import { wholeLines } from '@plat/testkit/ledger'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { approverAt } from '../../testing/approving.ts'
import { started } from '../../testing/started.ts'
import { json } from './testing/fixture.ts'

/** A gateway with a small cluster, whose deployment has three replicas. */
async function governed(t: TestContext, k8sOps: object, rules: readonly object[] = [{ name: 'all', action: 'allow' }]) {
  const requests: string[] = []
  const cluster = createServer((request, response) => {
    requests.push(`${request.method} ${request.url?.split('?')[0]}`)
    const resources = [{ name: 'pods', kind: 'Pod', namespaced: true }]
    if (request.url === '/api/v1') json(response, 200, { resources })
    else json(response, 200, { metadata: { name: 'web-1' }, spec: { replicas: 3 } })
  })
  const apiServer = `http://127.0.0.1:${await listening(cluster)}`
  t.after(() => closed(cluster))
  const dir = tempFolder()
  await writeFile(join(dir, 'token'), 'the-token')
  await writeFile(join(dir, 'policies.json'), policiesFile([testPolicy({ rules })]))
  const auditPath = join(dir, 'audit.jsonl')
  const { gateway, issuer } = await started(t, {
    auditPath,
    policyFile: join(dir, 'policies.json'),
    adminAuth: { devTokenApprovers: true },
    k8sOps: { enabled: true, apiServer, tokenFile: join(dir, 'token'), ...k8sOps },
  })
  const headers = { authorization: `Bearer ${issuer.token({ scope: 'tools:plat-k8s' })}` }
  return {
    requests,
    approver: approverAt(gateway.url),
    /** Returns the result of a call, or its error code. */
    async call(name: string, args: object): Promise<JsonObject> {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
      const response = await fetch(`${gateway.url}/mcp/plat-k8s`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify(message),
      })
      const text = await response.text()
      // A response after a long wait is an event.
      const data = /^data: (\{.*"(?:result|error)".*)$/m.exec(text)?.[1] ?? text
      const body = JSON.parse(data)
      const denial = denialIn(body)
      return denial === null ? body.result : { error: denial.data.error }
    },
    async outcome(tool: string): Promise<JsonObject> {
      const found = () =>
        wholeLines(auditPath)
          .map((line) => JSON.parse(line).rec)
          .find((rec) => rec.kind === 'outcome' && rec.tool === tool)
      await until(() => found() !== undefined, 'an outcome')
      return found()
    },
  }
}

const POD = { kind: 'Pod', namespace: 'shop', name: 'web-1' }
const SCALE = { kind: 'Deployment', namespace: 'shop', name: 'web', replicas: 3 }

test('a read is decided by policy, labels its session and is recorded with its arguments', async (t) => {
  const fixture = await governed(t, { taintLabels: ['cluster'] }, [
    { name: 'all', action: 'allow' },
    { name: 'only-shop', action: 'deny', when: "'namespace' in args && args.namespace != 'shop'" },
    { name: 'clean', action: 'deny', match: { tools: ['k8s_logs'], taints: ['cluster'] } },
  ])
  assert.equal((await fixture.call('k8s_get', { ...POD, namespace: 'bank' })).error, 'policy_denied')
  assert.deepEqual(fixture.requests, [])
  const { content } = await fixture.call('k8s_get', POD)
  assert.deepEqual(JSON.parse(Object(content)[0].text).metadata, { name: 'web-1' })
  const { server, attempts, taintsAdded } = await fixture.outcome('k8s_get')
  assert.deepEqual([server, Object(attempts).length, taintsAdded], ['plat-k8s', 2, ['cluster']])
  assert.equal((await fixture.call('k8s_logs', { namespace: 'shop', pod: 'web-1' })).error, 'policy_denied')
  assert.equal((await fixture.call('k8s_get', { ...POD, kind: 'Secret' })).error, 'policy_denied')
  assert.deepEqual(fixture.requests, ['GET /api/v1', 'GET /api/v1/namespaces/shop/pods/web-1'])
})

test('an applied write waits for an approval with a preview, although policy allows it', async (t) => {
  const fixture = await governed(t, { writes: { mode: 'apply' } })
  const held = fixture.call('k8s_scale', SCALE)
  const { tool, preview, reason } = await fixture.approver.pending()
  assert.deepEqual([tool, Object(preview).text], ['k8s_scale', 'scale Deployment shop/web to 3 replicas'])
  assert.match(String(reason), /k8sOps\.writes\.approval/)
  assert.deepEqual(fixture.requests, [])
  await fixture.approver.decide('approve')
  assert.equal(JSON.parse(Object((await held).content)[0].text).done, 'scale Deployment shop/web to 3 replicas')
  assert.deepEqual(fixture.requests, ['PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale'])
  const denied = fixture.call('k8s_scale', { ...SCALE, replicas: 0 })
  await fixture.approver.decide('deny')
  assert.equal((await denied).error, 'approval_denied')
  assert.equal(fixture.requests.length, 1)
})

test('a write that needs only policy is applied at once, and a proposal never changes anything', async (t) => {
  const free = await governed(t, { writes: { mode: 'apply', approval: 'policy' } })
  await free.call('k8s_scale', SCALE)
  assert.deepEqual(free.requests, ['PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale'])
  const proposing = await governed(t, {})
  const { content } = await proposing.call('k8s_scale', SCALE)
  assert.equal(JSON.parse(Object(content)[0].text).changed, false)
  assert.deepEqual(proposing.requests, ['GET /apis/apps/v1/namespaces/shop/deployments/web/scale'])
})
