import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '@plat/core'
import { parseResource } from '@plat/resources'
import { tempFolder } from '@plat/testkit/local'
import { createK8sOps } from '../builtin/k8s-ops/index.ts'
import { isDenial, Snapshots } from '../call/index.ts'
import { testIdentity } from '../call/testing/identity.ts'
import { createInfra } from '../targets/infra/index.ts'
import { planOf } from '../targets/infra/testing/plans.ts'
import { configWith, examples } from '../testing/configured.ts'

test('the configuration and resources of docs/cluster-operations.md are valid, and let agents do what the page says', async () => {
  const { k8sOps } = configWith(JSON.parse(examples('cluster-operations.md', 'json')[0] ?? ''))
  const [, agent = '', policy = ''] = examples('cluster-operations.md', 'yaml')
  assert.deepEqual([parseResource('Agent', agent).problems, parseResource('ToolPolicy', policy).problems], [[], []])
  const dialer = { fetchBytes: () => assert.fail('no request is expected') }
  const tokenFile = join(tempFolder(), 'token')
  writeFileSync(tokenFile, 'a-token')
  const config = { ...k8sOps, apiServer: 'http://127.0.0.1:9', tokenFile }
  const server = await createK8sOps({ config, env: {}, dialer, clock: systemClock })
  const caller = { identity: testIdentity, snapshot: new Snapshots().current }
  const judged = (name: string, args: object) => {
    const tool = server?.tools(caller).find((one) => one.name === name) ?? assert.fail(name)
    return tool.judge(args, caller)?.reason ?? (tool.requirements(args) === null ? 'allowed' : 'approval')
  }
  assert.equal(judged('k8s_logs', { namespace: 'shop', pod: 'a', tailLines: 500 }), 'allowed')
  assert.match(judged('k8s_logs', { namespace: 'vault', pod: 'a' }), /k8sOps\.namespaces/)
  const web = { kind: 'Deployment', namespace: 'staging', name: 'web', replicas: 10 }
  assert.equal(judged('k8s_scale', web), 'approval')
  assert.match(judged('k8s_scale', { ...web, replicas: 11 }), /writes\.maxReplicas is 10/)
  assert.match(judged('k8s_scale', { ...web, namespace: 'shop' }), /writes\.namespaces/)
})

test('the configuration and the policy of docs/infrastructure.md are valid, and its answer is the one that is given', async () => {
  const [json = '', response = ''] = examples('infrastructure.md', 'json')
  assert.deepEqual(parseResource('ToolPolicy', examples('infrastructure.md', 'yaml')[0] ?? '').problems, [])
  const { infra: config } = configWith(JSON.parse(json))
  const seals = { seal: (_: unknown, text: string) => text, open: (_: unknown, text: string) => text }
  const infra = createInfra({ config, seals, missingScopes: () => null, clock: systemClock })
  const identity = { ...testIdentity, namespace: 'platform', agent: 'builder' }
  const judged = async (value: object, who = identity) => {
    const bytes = Buffer.from(JSON.stringify(value))
    const answer = await infra?.answer({ name: 'plan', facts: { identity: who }, body: { bytes, value, args: bytes } })
    return answer === undefined || isDenial(answer) ? assert.fail() : Object(answer.value)
  }
  const plan = planOf([
    { address: 'aws_instance.web', actions: ['update'] },
    { address: 'aws_db_instance.main', type: 'aws_db_instance', actions: ['delete', 'create'] },
  ])
  assert.deepEqual({ ...(await judged(plan)), planSha256: '3b1f…' }, JSON.parse(response))
  assert.match((await judged(plan, testIdentity)).reason, /infra\.budgets\.perAgent\.\*\.maxTier is 2/)
  assert.match((await judged(planOf([{ type: 'external', mode: 'data', actions: ['read'] }]))).reason, /denyTypes/)
  const protectedOne = { address: 'module.eu.module.production.aws_instance.web', actions: ['update'] }
  assert.equal((await judged(planOf([protectedOne]))).tier, 4)
})
