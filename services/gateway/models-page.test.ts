import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { parseResource } from '@plat/resources'
import { parse } from 'yaml'
import { checkGatewayConfig } from './config.ts'
import { REPOSITORY } from './reference.ts'

const page = readFileSync(path.join(REPOSITORY, 'docs/models.md'), 'utf8')
const least = { policyFile: '/policies.json', auditPath: '/audit.jsonl', identity: { publicKeyFiles: ['/pub.pem'] } }

function examples(language: string): string[] {
  const found = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, text = '']) => text,
  )
  assert.notEqual(found.length, 0)
  return found
}

test('every gateway.json of docs/models.md is valid', () => {
  for (const text of examples('json')) {
    const { problems } = checkGatewayConfig(JSON.stringify({ ...least, ...JSON.parse(text) }), { exists: () => true })
    assert.deepEqual(problems.map(formatProblem), [], text)
  }
})

test('every Agent of docs/models.md is valid', () => {
  for (const text of examples('yaml')) {
    const spec = { image: 'example.com/a:1', tier: 'tier-0', ...parse(text).spec }
    const agent = {
      apiVersion: 'plat.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name: 'a', namespace: 'default' },
      spec,
    }
    assert.deepEqual(parseResource('Agent', JSON.stringify(agent)).problems, [], text)
  }
})
