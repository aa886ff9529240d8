import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { checkGatewayConfig } from '../config.ts'
import { REPOSITORY } from '../reference.ts'

for (const name of ['verify.md', 'admin.md', 'audit-sinks.md', 'transparency.md']) {
  test(`the gateway.json of docs/${name} is valid`, () => {
    const page = readFileSync(path.join(REPOSITORY, 'docs', name), 'utf8')
    const examples = Array.from(page.matchAll(/```json\n(.*?)```/gs), ([, text = '']) => JSON.parse(text))
    assert.ok(examples.length > 0)
    const least = { policyFile: '/p', auditPath: '/a', upstreamsFile: '/u', identity: { publicKeyFiles: ['/k'] } }
    const text = JSON.stringify(Object.assign(least, ...examples))
    const { problems } = checkGatewayConfig(text, { exists: () => true })
    assert.deepEqual(problems.map(formatProblem), [])
  })
}
