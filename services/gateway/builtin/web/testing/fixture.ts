import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { type Clock, systemClock } from '@plat/core'
import { createDialer, type Lookup } from '@plat/http'
import { silentLog } from '@plat/process'
import { closed, listening } from '@plat/testkit/local'
import { type Caller, isDenial, Snapshots } from '../../../call/index.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { checkGatewayConfig, typedConfig } from '../../../config.ts'
import { recordedMetrics } from '../../../testing/metrics.ts'
import { createWeb, type Domains, type WebConfig } from '../index.ts'

/** Result of a tool call: its texts, `error: …` for a failure, or code and reason of a denial. */
export type ToolResult = readonly string[] | string

export interface WebFixture {
  /** `http://<host>:<port>`; every host resolves to the test's server. */
  site(host: string): string
  /** Received requests, as host and path. */
  readonly requests: readonly string[]
  readonly counted: readonly string[]
  /** Returns the tools that the caller sees. */
  tools(who?: Partial<Caller['identity']>): readonly string[]
  /** Calls a tool as the gateway does, with its checks first. */
  call(tool: string, args: object, who?: Partial<Caller['identity']>, signal?: AbortSignal): Promise<ToolResult>
  /** Calls `web_fetch`. */
  fetch(url: string, args?: object): Promise<ToolResult>
}

export interface WebSetup {
  /** Keys of `web`, merged over settings that allow the test's sites. */
  readonly config?: object
  readonly answer?: (request: IncomingMessage, response: ServerResponse) => void
  readonly lookup?: Lookup
  readonly agentDomains?: Domains
  readonly clock?: Clock
}

/** The web tool with an HTTP server on loopback, under any host name. */
export async function setUpWeb(t: TestContext, setup: WebSetup = {}): Promise<WebFixture> {
  const { answer = () => {}, clock = systemClock } = setup
  const requests: string[] = []
  const { metrics, of } = recordedMetrics()
  const counted = of('plat_gateway_web_calls_total')
  const sites = createServer((request, response) => {
    requests.push(`${request.headers.host?.split(':', 1)[0]}${request.url}`)
    answer(request, response)
  })
  t.after(() => closed(sites))
  const port = await listening(sites)
  const own = {
    enabled: true,
    defaultAllow: true,
    allowedPorts: [port],
    allowedCIDRs: ['127.0.0.0/8'],
    ...setup.config,
  }
  const lookup: Lookup = setup.lookup ?? (async () => [{ address: '127.0.0.1', family: 4 }])
  const dialer = createDialer({ clock, lookup, log: silentLog })
  const web = await createWeb({
    config: webConfig(own),
    agentDomains: () => setup.agentDomains ?? null,
    dialer,
    dialPages: (allowedCIDRs) => createDialer({ clock, lookup, log: silentLog, allowedCIDRs }),
    clock,
    metrics,
  })
  t.after(() => {
    web.close()
    dialer.close()
  })
  const server = web.server ?? assert.fail('web is not enabled')
  const callerOf = (who: Partial<Caller['identity']> = {}): Caller => ({
    identity: { ...testIdentity, ...who },
    snapshot: new Snapshots().current,
  })
  const call: WebFixture['call'] = async (name, args, who, signal = new AbortController().signal) => {
    const caller = callerOf(who)
    const tool = server.tools(caller).find((one) => one.name === name) ?? assert.fail(`no tool ${name}`)
    const result =
      tool.judge(args, caller) ?? (await tool.run(args, { ...caller, signal, argsJson: null, retain: () => true }))
    if (isDenial(result)) return `${result.code}: ${result.reason}`
    const texts = result.content.map(({ text }) => text)
    return result.isError ? `error: ${texts.join()}` : texts
  }
  return {
    site: (host) => `http://${host}:${port}`,
    requests,
    counted,
    call,
    tools: (who) => server.tools(callerOf(who)).map(({ name }) => name),
    fetch: (url, args = {}) => call('web_fetch', { url, ...args }),
  }
}

/** `web` with defaults. */
export function webConfig(own: object): WebConfig {
  const { config, problems } = checkGatewayConfig(JSON.stringify({ ...LEAST, web: own }), { exists: () => true })
  assert.deepEqual(problems, [])
  return typedConfig(config).web
}

export const LEAST = {
  policyFile: '/policies.json',
  auditPath: '/audit.jsonl',
  upstreams: { notes: 'http://127.0.0.1:9/mcp' },
  identity: { publicKeyFiles: ['/pub.pem'] },
}

/** Sends a page. */
export function page(response: ServerResponse, type: string, body: string | Uint8Array, headers: object = {}): void {
  response.writeHead(200, { 'content-type': type, ...headers }).end(body)
}
