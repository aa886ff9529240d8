import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { systemClock, systemIds } from '@plat/core'
import { startIdentity } from '@plat/identity'
import { generateKeyFiles } from '@plat/keys'
import { silentLog } from '@plat/process'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import type { TestAgent } from '@plat/testkit/a2a-server'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { startFixture } from '@plat/testkit/mcp/fixture'
import { startAnthropicServer } from '@plat/testkit/model/anthropic'
import { startModelServer } from '@plat/testkit/model-server'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { type BrokerOptions, broker, type ConnectOptions, connect, type Session } from '../index.ts'

/** Public URL of the gateway, which differs from the address it is called by. */
export const PUBLIC = 'https://gateway.example'

const SECRETS = { broker: 'the-broker-token', admin: 'the-admin-token' } as const

/** A gateway in a separate process that trusts a broker, with its upstreams: MCP, two models, an agent, a sandbox. */
export interface GatewayFixture {
  readonly gateway: GatewayProcess
  readonly identityURL: string
  readonly agent: TestAgent
  /** Addresses and secrets, for clients in other processes. */
  readonly addresses: Readonly<Record<string, string>>
  /** Bodies of requests to the sandbox. */
  readonly ran: readonly string[]
  /** Mints of `default/assistant`, session `s1`, unless `of` says otherwise. */
  source(of?: Partial<BrokerOptions>): ReturnType<typeof broker>
  connect(options?: ConnectOptions): Promise<Session>
  /** Calls the admin API. */
  admin(path: string, body?: object): Promise<Readonly<Record<string, unknown>>>
  close(): Promise<void>
}

/** Starts all of it. */
export async function startGround(): Promise<GatewayFixture> {
  const closers: (() => unknown)[] = []
  const close = async () => {
    for (const one of closers.reverse()) await one()
  }
  const opened = <T extends { close(): unknown }>(server: T): T => {
    closers.push(() => server.close())
    return server
  }
  const dir = tempFolder()
  const keys = await generateKeyFiles(path.join(dir, 'txn'))
  const identity = opened(await startBroker(dir, keys.pubPath))
  const agent = opened(await startTestAgent())
  const sandbox = opened(await startSandbox())
  const config = await governed(dir, {
    identityURL: identity.url,
    agentURL: agent.url,
    sandboxURL: sandbox.url,
    opened,
  })
  const fixture = opened(await startFixture())
  const started = await startGatewayProcess({
    servers: { fixture: fixture.url },
    config: { ...config, txnTokens: { mode: 'add', signingKey: keys.keyPath, audience: 'plat.local' } },
    env: {
      PLAT_ADMIN_TOKEN: SECRETS.admin,
      ...(process.env.NODE_OPTIONS && { NODE_OPTIONS: process.env.NODE_OPTIONS }),
    },
  })
  const gateway = opened(started)
  const source: GatewayFixture['source'] = (of = {}) =>
    broker({
      ...{ identityURL: identity.url, brokerToken: SECRETS.broker, namespace: 'default', agent: 'assistant' },
      ...{ session: 's1', user: 'ada', scopes: SCOPES, tier: 'tier-0' },
      ...of,
    })
  return {
    addresses: addressesOf(gateway.url, identity.url),
    ...{ gateway, identityURL: identity.url, agent, ran: sandbox.ran, source, close },
    connect: (options) =>
      connect({
        gatewayURL: gateway.url,
        identityURL: identity.url,
        publicURL: PUBLIC,
        source: source(),
        env: {},
        ...options,
      }),
    async admin(where, body) {
      const response = await fetch(`${gateway.url}${where}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${SECRETS.admin}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return Object(await response.json())
    },
  }
}

function addressesOf(gatewayURL: string, identityURL: string) {
  return { gatewayURL, identityURL, publicURL: PUBLIC, brokerToken: SECRETS.broker, adminToken: SECRETS.admin }
}

const SCOPES = ['tools:fixture', 'tools:plat-exec', 'models:small', 'models:claude', 'models:nobody', 'agents:helper']

async function startBroker(dir: string, txnKey: string) {
  const exchangeConfig = path.join(dir, 'exchange.json')
  const reports = { allowedScopes: ['tools:fixture'], allowedNamespaces: ['default'], maxTTLSeconds: 120 }
  await writeFile(exchangeConfig, JSON.stringify({ audiences: { reports } }))
  return startIdentity({
    listen: '127.0.0.1:0',
    env: { PLAT_BROKER_TOKEN: SECRETS.broker },
    clock: systemClock,
    ids: systemIds(systemClock),
    log: silentLog,
    exchangeConfig,
    txnTokenKeys: [txnKey],
  })
}

/** A sandbox that returns the code it received. */
async function startSandbox() {
  const ran: string[] = []
  const server = createServer(async (request, response) => {
    const body = await text(request)
    ran.push(body)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ ran: JSON.parse(body).code }))
  })
  const url = `http://127.0.0.1:${await listening(server)}/{session}`
  return { url, ran, close: () => closed(server) }
}

interface Governed {
  readonly identityURL: string
  readonly agentURL: string
  readonly sandboxURL: string
  readonly opened: <T extends { close(): unknown }>(server: T) => T
}

/** gateway.json beside MCP servers: what is refused, and why. */
async function governed(dir: string, { identityURL, agentURL, sandboxURL, opened }: Governed): Promise<object> {
  const model = opened(await startModelServer())
  const claude = opened(await startAnthropicServer('sk-test'))
  const file = async (name: string, content: string) => {
    await writeFile(path.join(dir, name), content)
    return path.join(dir, name)
  }
  const helper = {
    endpoint: agentURL,
    allowedCallers: [],
    skills: [],
    streaming: true,
    trust: 'trusted',
    version: '1.0.0',
  }
  const no = { name: 'no', action: 'deny', match: { tools: ['test_image_content'] }, reason: 'no pictures' }
  const ask = { name: 'ask', action: 'require_approval', match: { tools: ['test_embedded_resource'] } }
  const secret = {
    name: 'secret',
    action: 'deny',
    match: { servers: ['a2a/*'], methods: ['CancelTask'] },
    reason: 'it goes on',
  }
  return {
    identity: { jwksURL: `${identityURL}/.well-known/jwks.json`, issuer: 'plat-identity' },
    policyFile: await file(
      'policies.json',
      policiesFile([testPolicy({ rules: [{ name: 'all', action: 'allow' }, no, ask, secret] }), ofHelper]),
    ),
    dpop: { publicURL: PUBLIC },
    models: {
      small: { upstream: model.url },
      claude: { provider: 'anthropic', upstream: claude.url, apiKeyFile: await file('key', 'sk-test') },
    },
    a2a: {
      routesFile: await file('agents.json', JSON.stringify({ version: 1, agents: { 'default/helper': helper } })),
      publicURL: PUBLIC,
    },
    exec: { enabled: true, endpointTemplate: sandboxURL },
    adminAuth: { devTokenApprovers: true },
    approvalTimeoutSeconds: 600,
  }
}

const ofHelper = testPolicy({ name: 'default/helper', agents: ['helper'] })
