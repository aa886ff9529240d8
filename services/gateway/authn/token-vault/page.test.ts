import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { formatProblem } from '@plat/config'
import { parseResource } from '@plat/resources'
import { checkGatewayConfig } from '../../config.ts'

const page = readFileSync(join(import.meta.dirname, '../../../../docs/per-user-credentials.md'), 'utf8')

/** Returns the indented block that begins with this line. */
function blockFrom(line: string): string {
  const found = page.split('\n')
  const from = found.indexOf(`       ${line}`)
  assert.notEqual(from, -1, line)
  const rest = found.slice(from)
  const end = rest.findIndex((one) => one !== '' && !one.startsWith('       '))
  return rest
    .slice(0, end)
    .map((one) => one.slice(7))
    .join('\n')
}

test('the configuration of the page is valid without a warning', () => {
  const least = { identity: { publicKeyFiles: ['/pub.pem'] }, policyFile: '/p', upstreamsFile: '/u', auditPath: '/a' }
  const { tokenVault } = JSON.parse(blockFrom('{'))
  const { problems } = checkGatewayConfig(JSON.stringify({ ...least, tokenVault }), { exists: () => true })
  assert.deepEqual(problems.map(formatProblem), [])
})

test('the MCPServer of the page is valid', () => {
  const { problems, object } = parseResource('MCPServer', blockFrom('apiVersion: plat.dev/v1alpha1'))
  assert.deepEqual(problems, [])
  assert.deepEqual(object?.spec.auth, { type: 'none', perUser: true, provider: 'github' })
})
