import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { Check } from 'typebox/schema'
import { parse } from 'yaml'
import { REPOSITORY } from '../reference.ts'

const read = (file: string) => readFileSync(path.join(REPOSITORY, file), 'utf8')
interface Described {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Described>>
}

const schema = JSON.parse(read('deploy/chart/values.schema.json'))

test('every values.yaml of the pages on Kubernetes and the console fits the schema of the chart', () => {
  const pages = ['docs/kubernetes.md', 'docs/console-on-a-cluster.md'].map(read).join('')
  const examples = [...pages.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text = '']) => parse(text))
  assert.equal(examples.length, 4)
  for (const values of examples) {
    assert.ok(Check(schema, values), JSON.stringify(values))
    assert.ok(!Check(schema, Object.assign({ imag: {} }, values)))
  }
})

test('the values of the chart fit their own schema, and every one of them has a meaning', () => {
  assert.ok(Check(schema, parse(read('deploy/chart/values.yaml'))))
  const unsaid: string[] = []
  const walk = (node: Described, where: string) => {
    // Members of gateway.json are described in its tables, thresholds in their alerts.
    if (where === 'gateway.config' || where === 'alerts.thresholds') return
    for (const [key, member] of Object.entries(node.properties ?? {})) {
      if (!member.description) unsaid.push(`${where}.${key}`)
      walk(member, where === '' ? key : `${where}.${key}`)
    }
  }
  walk(schema, '')
  assert.deepEqual(unsaid, [])
})

test('objects that Kubernetes defines are not restated in the schema, and names of Secrets are checked', () => {
  const takes = (values: object) => Check(schema, values)
  assert.ok(takes({ gateway: { tolerations: [{ key: 'plat' }], affinity: { nodeAffinity: {} } } }))
  assert.ok(!takes({ gateway: { tolerations: {} } }))
  assert.ok(!takes({ identity: { signingKeySecret: 'Not A Name' } }))
  assert.ok(takes({ identity: { flags: { issuer: 'x', 'max-delegation-depth': 3, 'identity-checks': ['spiffe'] } } }))
  assert.ok(!takes({ identity: { flags: { 'identity-checks': { spiffe: true } } } }))
  assert.ok(!takes({ gateway: { persistence: { size: 'large' } } }))
  assert.ok(!takes({ alerts: { thresholds: { ApprovalsBacklog: { approvals: -1 } } } }))
})
