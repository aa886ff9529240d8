import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { checkGatewayConfig } from '../../config.ts'
import { REPOSITORY } from '../../reference.ts'

const page = readFileSync(path.join(REPOSITORY, 'docs/config-sync.md'), 'utf8')
const [, example = ''] = /^```json\n([\s\S]*?)^```/m.exec(page) ?? []
const [, role = ''] = /^ {4}resourceNames: \[(.*)\]$/m.exec(page) ?? []

test('the gateway.json of docs/config-sync.md is valid, and its role covers every ConfigMap that it reads', () => {
  const config = JSON.parse(example)
  const least = {
    auditPath: '/audit.jsonl',
    identity: { publicKeyFiles: ['/pub.pem'] },
    upstreams: { notes: 'https://notes.example/mcp' },
  }
  const { problems } = checkGatewayConfig(JSON.stringify({ ...least, ...config }), { exists: () => true })
  assert.deepEqual(problems.map(formatProblem), [])
  const read = config.configSync.items.map(({ configMap }: { configMap: string }) => configMap)
  assert.deepEqual(role.split(', '), read)
})
