import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { checkGatewayConfig } from '../config.ts'
import { REPOSITORY } from '../reference.ts'

test('both files of docs/offline.md are valid, and name each other', () => {
  const page = readFileSync(path.join(REPOSITORY, 'docs/offline.md'), 'utf8')
  const [edge, collector] = Array.from(page.matchAll(/```json\n(.*?)```/gs), ([, text = '']) => JSON.parse(text))
  const least = { policyFile: '/p', auditPath: '/a', upstreamsFile: '/u', identity: { publicKeyFiles: ['/k'] } }
  for (const own of [edge, collector]) {
    const { problems } = checkGatewayConfig(JSON.stringify({ ...least, ...own }), { exists: () => true })
    assert.deepEqual(problems.map(formatProblem), [])
  }
  const ids = collector.auditCollector.edges.map(({ id }: { id: string }) => id)
  assert.ok(edge.offline.enabled && collector.auditCollector.enabled && ids.includes(edge.offline.edgeId))
})
