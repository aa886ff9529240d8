import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { StreamResponse } from '@a2a-js/sdk'
import { type Client, ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client'
import { messageOf } from '@plat/testkit/a2a-agent'
import type { TestAgent } from '@plat/testkit/a2a-server'
import type { TestIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { type Ends, started } from '../../../testing/started.ts'

/** Members of an entry of the routes file; others have minimal values. */
export type Exposure = Readonly<Record<string, unknown>>

/** A gateway with one agent, `default/helper`, unless `exposed` is given. */
export interface A2aFixture {
  readonly url: string
  readonly issuer: TestIssuer
  readonly auditPath: string
  drain(): Promise<unknown>
  /** Replaces the routes file. */
  publish(agents: Readonly<Record<string, Exposure>>): Promise<void>
  /** Returns a token of an agent with all scopes that the tests need. */
  token(change?: Readonly<Record<string, unknown>>): string
  /** Returns a client of the SDK, configured by the card of `agent`. */
  client(token?: string, agent?: string): Promise<Client>
  /** Posts a body to an agent, and returns the response. */
  post(body: unknown, options?: PostOptions): Promise<Posted>
}

export interface PostOptions {
  readonly token?: string
  readonly agent?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Posted {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The error of a JSON response; null if there is none. */
  readonly error: { readonly code: number; readonly message: string; readonly data: readonly ErrorInfo[] } | null
}

interface ErrorInfo {
  readonly reason: string
  readonly domain: string
  readonly metadata: Readonly<Record<string, string>>
}

const SCOPE = 'agents:helper agents:team/other agents:hidden agents:slow'

/** Starts the gateway. `config` overrides gateway.json; `rules` are the policy rules of `default/assistant` and `team/stranger`. */
export async function setUpA2a(
  t: Ends,
  agent: Pick<TestAgent, 'url'>,
  {
    exposed = { 'default/helper': {} },
    config = {},
    a2a = {},
    rules = [{ name: 'all', action: 'allow' }],
    drained = false,
  }: {
    readonly exposed?: Readonly<Record<string, Exposure>>
    readonly config?: object
    readonly a2a?: object
    readonly rules?: readonly object[]
    /** The test itself stops the gateway. */
    readonly drained?: boolean
  } = {},
): Promise<A2aFixture> {
  const dir = tempFolder()
  const routesFile = join(dir, 'agents.json')
  const publish: A2aFixture['publish'] = (agents) => {
    const entries = Object.entries(agents).map(([key, own]) => [key, { endpoint: agent.url, ...LEAST, ...own }])
    return writeFile(routesFile, JSON.stringify({ version: 1, agents: Object.fromEntries(entries) }))
  }
  await publish(exposed)
  const strangers = testPolicy({ name: 'team/all', namespace: 'team', agents: ['stranger'], rules })
  await writeFile(join(dir, 'policies.json'), policiesFile([testPolicy({ rules }), strangers]))
  const auditPath = join(dir, 'audit.jsonl')
  const own = { auditPath, policyFile: join(dir, 'policies.json'), policyReloadSeconds: 1, a2a: { routesFile, ...a2a } }
  const { gateway, issuer } = await started(t, { ...own, ...config }, drained)
  const token: A2aFixture['token'] = (change = {}) => issuer.token({ scope: SCOPE, ...change })
  return {
    url: gateway.url,
    issuer,
    auditPath,
    drain: () => gateway.drain(),
    publish,
    token,
    client: (bearer = token(), name = 'default/helper') => clientOf(`${gateway.url}/a2a/${name}`, bearer),
    async post(body, { token: bearer = token(), agent: name = 'default/helper', headers = {} } = {}) {
      const response = await fetch(`${gateway.url}/a2a/${name}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${bearer}`,
          'content-type': 'application/json',
          'a2a-version': '1.0',
          ...headers,
        },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })
      const text = await response.text()
      const error = text.startsWith('{') ? (JSON.parse(text).error ?? null) : null
      return { status: response.status, headers: response.headers, text, error }
    },
  }
}

const LEAST = { allowedCallers: [], skills: [], streaming: true, trust: 'trusted', version: '1.0.0' }

/** A caller in another namespace. */
export const STRANGER = {
  sub: 'spiffe://plat.local/ns/team/agent/stranger/session/s9',
  plat_ns: 'team',
  plat_agent: 'stranger',
  plat_session: 's9',
  scope: 'agents:default/helper',
} as const

function clientOf(base: string, token: string): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init) =>
    fetch(input, {
      ...init,
      headers: { ...Object.fromEntries(new Headers(init?.headers)), authorization: `Bearer ${token}` },
    })
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  })
  return factory.createFromUrl(`${base}/`, '.well-known/agent-card.json')
}

/** Returns the parameters of a message with this text for the SDK's client. */
export function asking(text: string, more: object = {}) {
  return { tenant: '', message: messageOf('', '', text), configuration: undefined, metadata: undefined, ...more }
}

/** Returns a JSON-RPC request. */
export function rpc(method: string, params: object = {}, id: unknown = 1): object {
  return { jsonrpc: '2.0', id, method, params }
}

/** Returns the parameters of a message in wire format. */
export function saying(text: string, more: object = {}): object {
  return { message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text }], ...more } }
}

/** Reads a stream to its end; `first` resolves with its first event. */
export function eventsOf(stream: AsyncIterable<StreamResponse>) {
  const begun = Promise.withResolvers<StreamResponse>()
  const read = async () => {
    const events: StreamResponse[] = []
    for await (const event of stream) {
      begun.resolve(event)
      events.push(event)
    }
    return events
  }
  const all = read()
  all.catch(begun.reject)
  return { first: begun.promise, all }
}
