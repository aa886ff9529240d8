import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { type Kind, parseResource } from '@plat/resources'
import type { Target } from '../call/index.ts'
import { testIdentity } from '../call/testing/identity.ts'
import { checkGatewayConfig } from '../config.ts'
import { compilePolicies } from '../decide/policy/compile.ts'
import { judge } from '../decide/policy/judge.ts'
import { taintRules } from '../targets/servers/labels.ts'
import { examples } from '../testing/configured.ts'

function resource<K extends Kind>(kind: K, text: string) {
  const { object, problems } = parseResource(kind, text)
  assert.deepEqual(problems, [])
  return object ?? assert.fail()
}

test('the labels and rules of docs/taint-and-guards.md do what the page says', () => {
  const [serverText = '', policyText = ''] = examples('taint-and-guards.md', 'yaml')
  const { spec: server } = resource('MCPServer', serverText)
  const { spec: policy } = resource('ToolPolicy', policyText)
  const labels = taintRules(server.trust ?? 'untrusted', server.toolLabels)
  const one = { name: 'default/assistant', namespace: 'default', agents: ['a'], cedar: '', rules: policy.rules ?? [] }
  const policies = [{ ...one, mode: 'enforce', defaultAction: 'deny' }] as const
  const compiled = compilePolicies({ version: 1, generation: 1, revision: 'sha256:0', policies: [...policies] })
  if ('problems' in compiled) assert.fail(compiled.problems.join())
  const { set } = compiled
  const decisionFor = (tool: string, ...taints: string[]) => {
    const target: Target = {
      kind: 'mcp',
      key: 'default/office',
      server: 'office',
      tool,
      trust: 'trusted',
      dataClass: 'internal',
      jurisdiction: null,
      labels: labels.of(tool),
      builtin: false,
    }
    const { sinks } = target.labels
    const call = { operation: 'mcp.call', method: 'tools/call', args: Buffer.from('{}'), now: 0 } as const
    const { action, code } = judge(set, { identity: testIdentity, target, tool, taints, sinks, ...call })
    return code ?? action
  }
  assert.deepEqual(labels.of('read_contract').taints, ['secret', 'document'])
  assert.deepEqual(labels.of('read_note').taints, ['document'])
  assert.deepEqual(labels.of('review').clearTaints, ['secret'])
  assert.equal(decisionFor('send_mail'), 'allow')
  assert.equal(decisionFor('send_mail', 'document'), 'allow')
  assert.equal(decisionFor('send_mail', 'secret'), 'tainted_sink')
  assert.equal(decisionFor('publish', 'secret'), 'tainted_sink')
  assert.equal(decisionFor('read_note', 'secret'), 'allow')
  assert.equal(decisionFor('send_mail', 'untrusted-input'), 'require_approval')
  assert.equal(decisionFor('publish', 'untrusted-input'), 'allow')
  assert.equal(decisionFor('delete_note', 'prompt-injection-suspected'), 'deny')
  assert.equal(decisionFor('delete_note', 'document'), 'allow')
})

test('the guards and captures of docs/taint-and-guards.md are valid', () => {
  const least = {
    policyFile: '/policies.json',
    auditPath: '/audit.jsonl',
    upstreamsFile: '/upstreams.json',
    identity: { publicKeyFiles: ['/pub.pem'] },
  }
  const [guards = '', captures = ''] = examples('taint-and-guards.md', 'json')
  const whole = { ...least, ...JSON.parse(guards), ...JSON.parse(captures) }
  const { problems } = checkGatewayConfig(JSON.stringify(whole), { exists: () => true })
  assert.deepEqual(problems.map(formatProblem), [])
  assert.deepEqual([whole.guards.length, whole.captureArgs.enabled], [3, true])
})
