import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type Log, silentLog } from '@plat/process'
import { TEST_ISSUER, testIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { type TestTenants, testTenants } from '@plat/testkit/tokens/tenants'
import { signJws } from '@plat/tokens'
import { AUDIENCE, provider } from '../../../testing/people.ts'
import { started } from '../../../testing/started.ts'
import {
  agentOf,
  agentsFor,
  BLUE,
  budgetsFor,
  FREE,
  listOf,
  policiesFor,
  pricesFor,
  RED,
  rolesOf,
  serversFor,
  type TestTenant,
} from './files.ts'
import { adminAt, callsAt } from './requests.ts'

interface TenantsSetUp {
  readonly tenants?: readonly TestTenant[]
  readonly log?: Log
  /** Over the configuration of the gateway. */
  readonly config?: object
}

/** A gateway with tenants, one upstream, an identity provider and all files that it follows. */
export async function setUpTenants(t: TestContext, options: TenantsSetUp = {}) {
  const { tenants = [RED, BLUE], log = silentLog, config = {} } = options
  const dir = tempFolder()
  const at = (name: string) => join(dir, name)
  // Whole or not at all: the gateway follows the files.
  const put = async (name: string, text: string) => {
    await writeFile(at(`${name}.new`), text)
    await rename(at(`${name}.new`), at(name))
  }
  const keys = testTenants(Object.fromEntries(tenants.map(({ name, namespace }) => [name, [namespace]])))
  const upstream = await startUpstream(t)
  const people = await provider(t)
  const checkpointKey = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })
  const files = {
    ...{ 'audit.pem': String(checkpointKey), 'keys.json': JSON.stringify(keys.document) },
    ...{ 'tenants.json': listOf(tenants), 'policies.json': policiesFor(tenants) },
    ...{ 'budgets.json': budgetsFor(tenants), 'pricing.json': pricesFor(tenants) },
    ...{ 'upstreams.json': serversFor(tenants, upstream.url), 'agents.json': agentsFor(tenants, upstream.url) },
  }
  for (const [name, text] of Object.entries(files)) await put(name, text)
  const own = { ...configOf(at, tenants, people.state.issuer), ...config }
  const { gateway } = await started(t, own, false, { log })
  const ledgerPath = (tenant: string) => join(dir, ...(tenant === '' ? [] : ['tenants', tenant]), 'audit.jsonl')
  return {
    ...{ dir, put, gateway, ledgerPath },
    token: tokensOf(keys, tenants),
    admin: adminAt(gateway.adminUrl, async (user) => await people.token({ preferred_username: user })),
    bearer: async (user: string) => `Bearer ${await people.token({ preferred_username: user })}`,
    call: callsAt(gateway.url),
    list: (all: readonly TestTenant[]) => put('tenants.json', listOf(all)),
    ledger: (tenant: string) => readFileSync(ledgerPath(tenant), 'utf8'),
  }
}

export type TwoTenants = Awaited<ReturnType<typeof setUpTenants>>

/** An MCP server that repeats the text of each call. */
async function startUpstream(t: TestContext) {
  const upstream = await startScriptedUpstream()
  upstream.answers(({ body }, response) => {
    const { id = null, params } = JSON.parse(body || '{}')
    const content = [{ type: 'text', text: `done ${params?.arguments?.text ?? ''}` }]
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result: { content } }))
  })
  t.after(() => upstream.close())
  return upstream
}

function configOf(at: (name: string) => string, tenants: readonly TestTenant[], issuer: string): object {
  return {
    identity: { publicKeyFiles: [at('keys.json')], issuer: TEST_ISSUER },
    ...{ tenantsFile: at('tenants.json'), policyFile: at('policies.json'), upstreamsFile: at('upstreams.json') },
    ...{ budgetsFile: at('budgets.json'), pricingFile: at('pricing.json'), policyReloadSeconds: 1 },
    a2a: { routesFile: at('agents.json') },
    ...{ auditPath: at('audit.jsonl'), auditCheckpointKey: pathToFileURL(at('audit.pem')).href },
    adminAuth: {
      mode: 'both',
      roles: rolesOf('fleet'),
      tenantRoles: Object.fromEntries(tenants.map(({ name }) => [name, rolesOf(name)])),
      namespaceRoles: { [BLUE.namespace]: rolesOf('blue-ns'), free: rolesOf('free-ns') },
      oidc: { issuer, audience: AUDIENCE },
      devTokenApprovers: true,
    },
  }
}

/** Returns a function that makes session tokens of a tenant's agent, signed with the key of `by`. */
function tokensOf(keys: TestTenants, tenants: readonly TestTenant[]) {
  const { claims } = testIssuer()
  const scopes = [...tenants, FREE].map((one) => `tools:${one.name}-notes agents:${one.namespace}/${agentOf(one)}`)
  return (one: TestTenant, own: Readonly<Record<string, unknown>> = {}, by = one.name) => {
    const { name, namespace, mark } = one
    const names = { plat_ns: namespace, plat_agent: agentOf(one), plat_session: `${name}-session`, ...own }
    const { plat_ns, plat_agent, plat_session } = names
    const sub = `spiffe://plat.local/ns/${plat_ns}/agent/${plat_agent}/session/${plat_session}`
    const rest = { act: { sub: `user:${mark}-user` }, scope: `${scopes.join(' ')} tools:shared`, ...names, sub }
    return signJws(keys.signers[by] ?? assert.fail(`no key of ${by}`), {}, claims(rest))
  }
}
