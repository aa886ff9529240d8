import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import { systemClock, systemIds } from '@plat/core'
import { startIdentity } from '@plat/identity'
import { silentLog } from '@plat/process'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { startFixture } from '@plat/testkit/mcp/fixture'
import { startModelServer } from '@plat/testkit/model-server'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { broker } from '../../index.ts'
import { Front } from './front.ts'

const SECRETS = { broker: 'the-broker-token', admin: 'the-admin-token' } as const
export const PUBLIC_URL = 'https://gateway.example'
export const SCOPES = ['tools:fixture', 'models:small']

/** Refusals of the bootstrap endpoint that scenarios name. */
const BOOTSTRAP_STATUS: Readonly<Record<string, number>> = {
  not_adopted: 425,
  not_prepared: 425,
  temporarily_unavailable: 503,
  invalid_request: 400,
  invalid_token: 401,
  access_denied: 403,
  session_revoked: 403,
  already_bootstrapped: 409,
  session_suspended: 409,
  session_gone: 410,
}

const RULES = [
  { name: 'no', action: 'deny', match: { tools: ['test_image_content'] }, reason: 'no pictures' },
  { name: 'hold', action: 'require_approval', match: { tools: ['test_embedded_resource'] } },
  rate('short', 'test_audio_content', 2),
  rate('long', 'test_multiple_content_types', 100_000_000),
  { name: 'all', action: 'allow' },
]

function rate(name: string, tool: string, seconds: number): object {
  return { name, action: 'allow', match: { tools: [tool] }, rateLimit: { count: 1, seconds, per: 'session' } }
}

/** A broker, a gateway behind a front, and a bootstrap endpoint that mints by the broker. */
export interface Plat {
  readonly front: Front
  readonly identityURL: string
  readonly bootstrap: Bootstrap
  readonly brokerToken: string
  admin(where: string, body?: object): Promise<Readonly<Record<string, unknown>>>
  close(): Promise<void>
}

export async function startPlat(): Promise<Plat> {
  const dir = tempFolder()
  const file = async (name: string, content: object | string) => {
    await writeFile(path.join(dir, name), typeof content === 'string' ? content : JSON.stringify(content))
    return path.join(dir, name)
  }
  const reports = { allowedScopes: ['tools:fixture'], allowedNamespaces: ['default'], maxTTLSeconds: 120 }
  const identity = await startIdentity({
    ...{ listen: '127.0.0.1:0', env: { PLAT_BROKER_TOKEN: SECRETS.broker }, log: silentLog },
    ...{ clock: systemClock, ids: systemIds(systemClock) },
    exchangeConfig: await file('exchange.json', { audiences: { reports } }),
  })
  const [fixture, model] = await Promise.all([startFixture(), startModelServer()])
  const prices = { version: 1, currency: 'USD', id: 'test', models: { 'openai/*': { input: '1', output: '10' } } }
  const gateway = await startGatewayProcess({
    servers: { fixture: fixture.url },
    config: {
      identity: { jwksURL: `${identity.url}/.well-known/jwks.json`, issuer: 'plat-identity' },
      policyFile: await file('policies.json', policiesFile([testPolicy({ rules: RULES })])),
      dpop: { publicURL: PUBLIC_URL },
      models: { small: { upstream: model.url } },
      pricingFile: await file('prices.json', prices),
      sessionBudgetUSD: 0.000001,
      adminAuth: { devTokenApprovers: true },
      approvalTimeoutSeconds: 600,
    },
    env: { PLAT_ADMIN_TOKEN: SECRETS.admin },
  })
  const front = new Front(gateway.url)
  await front.start()
  const bootstrap = new Bootstrap(identity.url, () => front.url)
  await bootstrap.start()
  return {
    ...{ front, bootstrap, identityURL: identity.url, brokerToken: SECRETS.broker },
    async admin(where, body) {
      const headers = { authorization: `Bearer ${SECRETS.admin}`, 'content-type': 'application/json' }
      const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
      const response = await fetch(gateway.url + where, { headers, ...init })
      assert.ok(response.ok, `${where}: ${response.status}`)
      return Object(await response.json())
    },
    async close() {
      for (const one of [bootstrap, front, gateway, fixture, model, identity]) await one.close()
    },
  }
}

/** An endpoint for pods that first refuses as a scenario says. It serves `lost` and `cut` requests, and their responses do not arrive, or half of them. */
export class Bootstrap {
  url = ''
  requests = 0
  session = ''
  refusals: string[] = []
  readonly #identityURL: string
  readonly #server = createServer((_, response) => {
    this.#answer().then(
      ({ status, body, ends = 'whole' }) => {
        const text = JSON.stringify(body)
        if (ends === 'lost') return response.destroy()
        const { length } = text
        response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '1', 'content-length': length })
        if (ends === 'whole') return response.end(text)
        return response.write(text.slice(0, length / 2), () => response.destroy())
      },
      () => response.destroy(),
    )
  })
  readonly #gatewayURL: () => string

  constructor(identityURL: string, gatewayURL: () => string) {
    this.#identityURL = identityURL
    this.#gatewayURL = gatewayURL
  }

  async start(): Promise<void> {
    this.url = `http://127.0.0.1:${await listening(this.#server)}`
  }

  expect(session: string, refusals: readonly string[]): void {
    Object.assign(this, { session, refusals: [...refusals], requests: 0 })
  }

  close(): Promise<void> {
    return closed(this.#server)
  }

  async #answer(): Promise<{ status: number; body: object; ends?: 'lost' | 'cut' }> {
    this.requests++
    const error = this.refusals.shift()
    if (error !== undefined && error !== 'lost' && error !== 'cut')
      return { status: BOOTSTRAP_STATUS[error] ?? 500, body: { error, error_description: error } }
    const { session } = this
    const of = { namespace: 'default', agent: 'assistant', session, user: 'ada', scopes: SCOPES, tier: 'tier-0' }
    const source = broker({ identityURL: this.#identityURL, brokerToken: SECRETS.broker, ...of })
    const { token } = await source.issue({ jkt: null, signal: new AbortController().signal })
    const env = { PLAT_GATEWAY_URL: this.#gatewayURL(), PLAT_SESSION: session }
    return { status: 200, body: { token, attested: false, env, session }, ...(error && { ends: error }) }
  }
}
