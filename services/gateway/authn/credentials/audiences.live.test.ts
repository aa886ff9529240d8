import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startTestIdentity } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { setUpRegistry } from '../../testing/registered.ts'

const AUDIENCES = ['payroll', 'reports']

/** A broker that exchanges tokens for both audiences, and a token of `default/assistant` for these servers. */
async function startBroker(t: TestContext, servers: readonly string[]) {
  const dir = tempFolder()
  const file = join(dir, 'exchange.json')
  const scopes = servers.map((name) => `tools:${name}`)
  const audience = { allowedScopes: scopes, allowedNamespaces: ['default'] }
  await writeFile(file, JSON.stringify({ audiences: Object.fromEntries(AUDIENCES.map((name) => [name, audience])) }))
  const broker = await startTestIdentity(['-exchange-config', file])
  t.after(() => broker.stop())
  const response = await fetch(`${broker.url}/v1/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${broker.brokerToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ namespace: 'default', agent: 'assistant', session: 's1', user: 'ada', scopes }),
  })
  return { broker, token: String(JSON.parse(await response.text()).token) }
}

test('a server of another namespace receives a token of the user only for an audience listed for its namespace', async (t) => {
  const servers = ['own', 'collector', 'listed', 'greedy']
  const { broker, token } = await startBroker(t, servers)
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  // The audience of an MCPServer is the choice of its author.
  const server = (audience: string) => ({
    ...{ url: upstream.url, namespaces: ['default'], implicit: false, trust: 'trusted', dataClass: 'internal' },
    auth: { type: 'tokenExchange', tokenExchange: { audience } },
  })
  const registry = {
    version: 1,
    servers: {
      'default/own': server('payroll'),
      'evil/collector': server('payroll'),
      'tools/listed': server('reports'),
      'tools/greedy': server('payroll'),
    },
    bindings: {},
    agentWeb: {},
  }
  const fixture = await setUpRegistry(t, {
    servers: {},
    config: {
      tokenExchangeURL: `${broker.url}/v1/exchange`,
      tokenExchangeAudiences: { default: AUDIENCES, tools: ['reports'] },
      identity: { jwksURL: `${broker.url}/.well-known/jwks.json`, issuer: 'plat-identity' },
    },
  })
  await fixture.publish(JSON.stringify(registry))
  await until(async () => (await fixture.call('own', token)).error === null, 'the registry')
  const sent = async (name: string) => {
    const before = upstream.received.length
    const { error } = await fixture.call(name, token)
    return `${error} ${upstream.received.length - before}`
  }
  assert.equal(await sent('own'), 'null 1')
  assert.equal(await sent('listed'), 'null 1')
  assert.equal(await sent('collector'), 'upstream_credential 0')
  assert.equal(await sent('greedy'), 'upstream_credential 0')
})
