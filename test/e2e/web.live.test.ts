import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { closed, listening } from '@plat/testkit/local'
import { passed } from '@plat/testkit/mcp/denial'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'

const CARD = '4111 1111 1111 1111'

let gateway: GatewayProcess
let port = 0
const requests: string[] = []
const closers: (() => unknown)[] = []

const site: RequestListener = (request, response) => {
  requests.push(request.url ?? '')
  if (request.url?.startsWith('/search')) {
    const results = [{ url: 'https://localhost/found', title: 'Found', content: 'here' }]
    response.end(JSON.stringify({ results }))
  } else response.writeHead(200, { 'content-type': 'text/html' }).end(`<h1>Shop</h1><p>Pay with ${CARD}.`)
}

before(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  closers.push(() => rm(dir, { recursive: true }))
  const server = createServer(site)
  port = await listening(server)
  closers.push(() => closed(server))
  const rules = [
    { name: 'all', action: 'allow' },
    { name: 'no-search', action: 'deny', match: { tools: ['web_search'], taints: ['from-the-web'] } },
  ]
  const agentWeb = { 'default/assistant': { allowedDomains: ['localhost'], deniedDomains: ['*.localhost'] } }
  await writeFile(join(dir, 'policies.json'), policiesFile([testPolicy({ rules })]))
  const tools = { 'plat-web/web_fetch': { perCall: '0.002' } }
  await writeFile(join(dir, 'prices.json'), JSON.stringify({ version: 1, currency: 'USD', id: 'p', tools }))
  await writeFile(join(dir, 'upstreams.json'), JSON.stringify({ version: 1, servers: {}, bindings: {}, agentWeb }))
  gateway = await startGatewayProcess({
    servers: {},
    scopes: ['tools:plat-web'],
    config: {
      policyFile: join(dir, 'policies.json'),
      upstreamsFile: join(dir, 'upstreams.json'),
      taintStorePath: join(dir, 'taints.jsonl'),
      pricingFile: join(dir, 'prices.json'),
      sessionBudgetUSD: 0.0025,
      dlpProfiles: { cards: { detectors: ['credit_card'] } },
      dlp: { servers: { 'plat-web': 'cards' } },
      web: {
        enabled: true,
        allowedPorts: [443, port],
        allowedCIDRs: ['127.0.0.0/8', '::1/128'],
        taintLabels: ['from-the-web'],
        search: { backend: 'searxng', url: `http://127.0.0.1:${port}` },
      },
    },
  })
  closers.push(() => gateway.close())
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

function tokenOf(session: string, agent = 'assistant'): string {
  const sub = `spiffe://plat.local/ns/default/agent/${agent}/session/${session}`
  return gateway.issuer.token({ scope: 'tools:plat-web', sub, plat_session: session, plat_agent: agent })
}

async function connected(token: string, mode: 'legacy' | { pin: '2026-07-28' } = 'legacy'): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp/plat-web`), { requestInit }))
  return client
}

const toolsOf = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name)
const page = (host = 'localhost') => ({ name: 'web_fetch', arguments: { url: `http://${host}:${port}/page` } })

async function records(session: string): Promise<Record<string, unknown>[]> {
  const all = (await gateway.ledger()).map((line) => JSON.parse(line).rec)
  return all.filter((rec) => rec.session === session && rec.tool !== undefined)
}

for (const mode of ['legacy', { pin: '2026-07-28' }] as const) {
  const session = mode === 'legacy' ? 'old' : 'new'

  test(`a client of ${session} revisions reads a page: redacted, recorded, and the session is labelled from then on`, async () => {
    // Shows D3.web.enabled, D3.web.taintLabels and D3.web.search.backend.
    const client = await connected(tokenOf(session), mode)
    assert.deepEqual(await toolsOf(client), ['web_fetch', 'web_search'])
    const found = await client.callTool({ name: 'web_search', arguments: { query: 'shop' } })
    assert.match(JSON.stringify(found.content), /https:\/\/localhost\/found/)
    // A search is read from the web as well.
    assert.deepEqual(await toolsOf(client), ['web_fetch'])
    const read = JSON.stringify((await client.callTool(page())).content)
    assert.match(read, /# Shop/)
    assert.doesNotMatch(read, /4111/)
    await assert.rejects(passed(client.callTool(page())), /budget/i)
    await assert.rejects(passed(client.callTool({ name: 'web_search', arguments: { query: 'x' } })), /no-search|denied/)
    await client.close()
    await until(
      async () => (await records(session)).filter(({ kind }) => kind === 'outcome').length === 2,
      'both outcomes',
    )
    const [searched, fetched] = (await records(session)).filter(({ kind }) => kind === 'outcome')
    assert.deepEqual(searched?.taintsAdded, ['from-the-web'])
    assert.deepEqual([fetched?.server, fetched?.tool, fetched?.result], ['plat-web', 'web_fetch', 'completed'])
    assert.equal(fetched?.endpoint, `http://localhost:${port}`)
    assert.doesNotMatch(JSON.stringify(await records(session)), /\/page/)
  })
}

test('a host that the Agent denies is one denial before any request', async () => {
  // Shows D2.agent.web.deniedDomains and D2.agent.web.allowedDomains.
  const client = await connected(tokenOf('denied'))
  const before = requests.length
  await assert.rejects(
    passed(client.callTool(page('a.localhost'))),
    (error: Error & { code?: number; data?: unknown }) => {
      assert.match(error.message, /Agent\.spec\.web\.deniedDomains names its domain/)
      assert.equal(error.code, 403)
      return true
    },
  )
  await assert.rejects(
    passed(client.callTool(page('example.com'))),
    /Agent\.spec\.web\.allowedDomains does not name its domain/,
  )
  await client.close()
  assert.equal(requests.length, before)
  await until(async () => (await records('denied')).length === 2, 'both denials')
  const kinds = (await records('denied')).map(({ kind, code }) => `${kind} ${code}`)
  assert.deepEqual(kinds, ['decision policy_denied', 'decision policy_denied'])
})

test('an agent without allowed domains gets an empty tool list, and the scope is checked first', async () => {
  const other = await connected(tokenOf('other', 'nobody'))
  assert.deepEqual(await toolsOf(other), [])
  await assert.rejects(passed(other.callTool(page())), /no such tool/)
  await other.close()
  const unscoped = gateway.issuer.token({ scope: 'tools:notes' })
  await assert.rejects(connected(unscoped), /scope|403/)
})

test('calls are counted by tool and by how they ended', async () => {
  // Shows D3.metric.plat_gateway_web_calls_total.
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  const counted = text.split('\n').filter((line) => line.startsWith('plat_gateway_web_calls_total{'))
  assert.deepEqual(counted.toSorted(), [
    'plat_gateway_web_calls_total{tool="web_fetch",result="denied"} 2',
    'plat_gateway_web_calls_total{tool="web_fetch",result="ok"} 2',
    'plat_gateway_web_calls_total{tool="web_search",result="ok"} 2',
  ])
})
