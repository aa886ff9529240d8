import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatProblem, type Problem } from '@plat/config'
import { checkGatewayConfig } from '@plat/gateway/config'
import { gatewayValues, type KeyValues } from './gateway-values.ts'
import { requirements } from './requirements.ts'

const least = {
  policyFile: '/policies.json',
  auditPath: '/audit.jsonl',
  upstreamsFile: '/upstreams.json',
  identity: { publicKeyFiles: ['/pub.pem'] },
}

/** Errors of a file with this value. */
function problemsOf({ at, file }: KeyValues, value: unknown): readonly Problem[] {
  const [first = '', ...rest] = at.split('.')
  const inner = rest.length === 0 ? value : rest.reduceRight((held: unknown, key) => ({ [key]: held }), value)
  const own = file === undefined ? { [first]: inner } : file(value)
  const { problems } = checkGatewayConfig(JSON.stringify({ ...least, ...own }), { exists: () => true })
  return problems.filter(({ severity }) => severity === 'error')
}

test('keys of gateway.json accept the values of the contract, and report others by the name of the key', () => {
  const faults: string[] = []
  for (const [id, key] of Object.entries(gatewayValues)) {
    for (const value of key.accepted) {
      const problems = problemsOf(key, value).map(formatProblem)
      if (problems.length > 0) faults.push(`${id}: ${JSON.stringify(value)} is refused: ${problems.join('; ')}`)
    }
    for (const value of key.refused) {
      const problems = problemsOf(key, value)
      if (!problems.some(({ path }) => path.startsWith(key.at)))
        faults.push(`${id}: ${JSON.stringify(value)}: no error at ${key.at}: ${problems.map(formatProblem).join('; ')}`)
    }
  }
  assert.deepEqual(faults, [])
  const ids = new Set(requirements.map(({ id }) => id))
  assert.deepEqual(
    Object.keys(gatewayValues).filter((id) => !ids.has(id)),
    [],
  )
})
