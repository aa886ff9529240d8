import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { parseResource } from '@plat/resources'
import { parse } from 'yaml'
import { checkGatewayConfig } from './config.ts'
import { REPOSITORY } from './reference.ts'

const page = readFileSync(path.join(REPOSITORY, 'docs/a2a.md'), 'utf8')
const least = {
  policyFile: '/policies.json',
  auditPath: '/audit.jsonl',
  upstreamsFile: '/upstreams.json',
  identity: { publicKeyFiles: ['/pub.pem'] },
}

test('the gateway.json, the Agent and the rules of docs/a2a.md are valid', () => {
  const example = (language: string) =>
    [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, text = '']) => text)
  const [config = ''] = example('json')
  const { problems } = checkGatewayConfig(JSON.stringify({ ...least, ...JSON.parse(config) }), { exists: () => true })
  assert.deepEqual(problems.map(formatProblem), [])
  const [agent = '', rules = ''] = example('yaml')
  assert.deepEqual(parseResource('Agent', agent).problems, [])
  const policy = {
    apiVersion: 'plat.dev/v1alpha1',
    kind: 'ToolPolicy',
    metadata: { name: 'research', namespace: 'default' },
    spec: { rules: parse(rules) },
  }
  assert.deepEqual(parseResource('ToolPolicy', JSON.stringify(policy)).problems, [])
})
