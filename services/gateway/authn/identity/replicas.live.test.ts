import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testProver } from '@plat/testkit/dpop'
import type { GatewayProcess } from '@plat/testkit/gateway'
import { TEST_TRUST_DOMAIN } from '@plat/testkit/identity'
import { TestGateways } from '@plat/testkit/postgres/gateways'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'

const PUBLIC = 'https://gateway.example'
const postgres = usePostgres()
const shared = new TestGateways({
  postgres,
  config: { dpop: { publicURL: PUBLIC } },
  stateBackend: { leader: { retryMillis: 200 } },
})
const prover = testProver()

/** A token that is bound to the key of the prover. */
function boundToken(): string {
  const sub = `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/assistant/session/s`
  return shared.issuer.token({ sub, plat_session: 's', scope: 'tools:notes', cnf: { jkt: prover.jkt } })
}

async function call({ url }: GatewayProcess, token: string, proof: string) {
  const response = await fetch(`${url}/mcp/notes`, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...{ 'mcp-protocol-version': '2025-11-25', authorization: `DPoP ${token}`, dpop: proof },
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'free', arguments: {} } }),
  })
  return { status: response.status, text: await response.text() }
}

test('of many equal proofs at three replicas at once exactly one passes, and each fresh proof does', async () => {
  const gateways = await shared.startMany(3)
  const token = boundToken()
  const proofOf = () => prover.proof(`${PUBLIC}/mcp/notes`, token)
  for (let round = 0; round < 5; round++) {
    const proof = proofOf()
    const results = await Promise.all(Array.from({ length: 12 }, (_, n) => call(at(gateways, n), token, proof)))
    const statuses = results.map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 200).length, 1, statuses.join(' '))
    assert.equal(statuses.filter((status) => status === 401).length, 11, statuses.join(' '))
  }
  const fresh = await Promise.all(Array.from({ length: 30 }, (_, n) => call(at(gateways, n), token, proofOf())))
  assert.deepEqual([...new Set(fresh.map(({ status }) => status))], [200])
})

function at(gateways: readonly GatewayProcess[], n: number): GatewayProcess {
  return gateways[n % gateways.length] ?? assert.fail('there is no gateway')
}

test('while the database is away a proof is refused with 503, and proofs pass again afterwards', async () => {
  const gateway = await shared.start()
  const token = boundToken()
  const proofOf = () => prover.proof(`${PUBLIC}/mcp/notes`, token)
  assert.equal((await call(gateway, token, proofOf())).status, 200)
  await postgres.stop()
  try {
    const refused = await call(gateway, token, proofOf())
    assert.deepEqual([refused.status, /state_unavailable/.test(refused.text)], [503, true], refused.text)
  } finally {
    await postgres.start()
  }
  await until(async () => (await call(gateway, token, proofOf())).status === 200, 'a proof that passes')
})
