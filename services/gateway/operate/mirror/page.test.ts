import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { checkGatewayConfig } from '../../config.ts'
import { REPOSITORY } from '../../reference.ts'

const page = readFileSync(path.join(REPOSITORY, 'docs/cluster-copies.md'), 'utf8')
const [, example = ''] = /^```json\n([\s\S]*?)^```/m.exec(page) ?? []

test('the gateway.json of docs/cluster-copies.md is valid, and switches on what the page is about', () => {
  const config = JSON.parse(example)
  const least = {
    auditPath: '/audit.jsonl',
    policyFile: '/policies.json',
    identity: { publicKeyFiles: ['/pub.pem'] },
    upstreams: { notes: 'https://notes.example/mcp' },
  }
  const { problems } = checkGatewayConfig(JSON.stringify({ ...least, ...config }), { exists: () => true })
  assert.deepEqual(problems.map(formatProblem), [])
  const { activity, revocationMirror, tokenVault } = config
  assert.ok(activity.enabled && revocationMirror.enabled && tokenVault.mirror.enabled)
})
