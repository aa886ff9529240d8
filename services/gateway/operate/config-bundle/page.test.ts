import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { problemsOfBundle } from '../../composition/bundled.ts'
import { checkGatewayConfig, typedConfig } from '../../config.ts'
import { REPOSITORY } from '../../reference.ts'
import { REASONS } from './bundles.ts'

const page = readFileSync(path.join(REPOSITORY, 'docs/config-bundles.md'), 'utf8')
const [, example = ''] = /^```json\n([\s\S]*?)^```/m.exec(page) ?? []
const least = { auditPath: '/audit.jsonl', identity: { publicKeyFiles: ['/pub.pem'] } }

function checked(change: object = {}) {
  const whole = JSON.stringify({ ...least, ...JSON.parse(example), ...change })
  return checkGatewayConfig(whole, { exists: () => true })
}

test('the gateway.json of docs/config-bundles.md is valid, and its page names every reason', () => {
  assert.deepEqual(checked().problems.map(formatProblem), [])
  assert.deepEqual(
    [...page.matchAll(/^\| `(\w+)` \| (?!why)/gm)].map(([, reason]) => reason),
    [...REASONS],
  )
})

test('a configuration without a source of bundles, or that reads none of their files, gets a warning', () => {
  const configBundle = { enabled: true, dir: '/elsewhere', trustedKeyFiles: ['/k.pem'] }
  assert.deepEqual(checked({ configBundle }).problems.map(formatProblem), [
    'warning: configBundle.enabled: no bundle can come: set push, pull.url or dropDir',
    'warning: configBundle.dir: no file of it is read: name some, such as policyFile /elsewhere/policies.json',
  ])
})

test('files that gateway.json names must be in a bundle, and be what their features read', () => {
  const problemsOf = problemsOfBundle(typedConfig(checked().config))
  const file = (value: unknown) => Buffer.from(JSON.stringify(value))
  const policies = { version: 1, generation: 1, revision: 'sha256:0', policies: [] }
  const upstreams = { version: 1, servers: {}, bindings: {}, agentWeb: {} }
  const good = new Map([
    ['policies.json', file(policies)],
    ['upstreams.json', file(upstreams)],
    ['revocations.json', file({ version: 1, revocations: [] })],
    ['notes.txt', Buffer.from('whatever')],
  ])
  assert.deepEqual(problemsOf(good), [])
  const missing = new Map(good)
  missing.delete('revocations.json')
  assert.deepEqual(problemsOf(missing), ['revocations.json is missing, which revocationsFile of gateway.json names'])
  for (const name of ['policies.json', 'upstreams.json', 'revocations.json']) {
    const [problem = ''] = problemsOf(new Map([...good, [name, file({ version: 2 })]]))
    assert.ok(problem.startsWith(`${name}: `), problem)
  }
})
