import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { parseResource } from '@plat/resources'
import { checkGatewayConfig } from '../../config.ts'

const page = readFileSync(path.resolve(import.meta.dirname, '../../../../docs/resource-api.md'), 'utf8')

function block(language: string): string {
  const [, text = ''] = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(page) ?? []
  assert.notEqual(text, '', language)
  return text
}

test('the configuration of the page is valid, and its file is a resource', () => {
  const own = JSON.parse(block('json'))
  const least = {
    policyFile: 'p.json',
    auditPath: 'a.jsonl',
    upstreamsFile: 'u.json',
    identity: { publicKeyFiles: ['pub.pem'] },
  }
  const { config, problems } = checkGatewayConfig(JSON.stringify({ ...least, ...own }), { exists: () => true })
  assert.deepEqual(problems, [])
  assert.deepEqual({ ...Object(config.resourceAPI) }, own.resourceAPI)
  assert.deepEqual(parseResource('MCPServer', block('yaml')).problems, [])
})
