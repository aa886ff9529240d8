import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Check } from 'typebox/value'
import { decodePolicies } from '../decide/policy/decode.ts'
import { simulateBody } from '../decide/policy/simulate/routes.ts'
import { examples } from '../testing/configured.ts'

test('the gateway accepts the request body of docs/simulation.md', () => {
  const body: unknown = JSON.parse(examples('simulation.md', 'json')[0])
  assert.ok(Check(simulateBody, body))
  const decoded = decodePolicies(Buffer.from(JSON.stringify(body.policies)))
  assert.ok(decoded.ok, decoded.ok ? '' : decoded.problems.join('\n'))
})
