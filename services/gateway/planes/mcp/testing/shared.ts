import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { TEST_TRUST_DOMAIN } from '@plat/testkit/identity'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { type Ends, started } from '../../../testing/started.ts'

/** A gateway with servers of gateway.json, and clients at its `/mcp`. */
export interface SharedFixture {
  /** `http://127.0.0.1:<port>/mcp` */
  readonly url: string
  readonly adminUrl: string
  /** Returns a token for these servers; default: for all. */
  token(session?: string, servers?: readonly string[]): string
  /** Sends one message and returns its response. */
  send(message: object, headers?: Readonly<Record<string, string>>): Promise<Response>
  /** Returns the records of the ledger. */
  records(): readonly Readonly<Record<string, unknown>>[]
  readonly auditPath: string
  /** Stops the gateway before the end of the test. */
  stop(): Promise<void>
}

/** Starts a gateway with these servers, by name. `rules` are those of the policy of the callers. */
export async function startShared(
  t: Ends,
  servers: Readonly<Record<string, string>>,
  {
    rules,
    ...own
  }: { readonly rules?: readonly object[]; readonly auditPath?: string } & Readonly<Record<string, unknown>> = {},
): Promise<SharedFixture> {
  const dir = tempFolder()
  const { auditPath = join(dir, 'audit.jsonl') } = own
  const policyFile = join(dir, 'own-policies.json')
  await writeFile(policyFile, policiesFile([testPolicy(rules === undefined ? {} : { rules })]))
  const { gateway, issuer } = await started(t, { upstreams: servers, policyFile, ...own, auditPath })
  const token: SharedFixture['token'] = (session = 's1', names = Object.keys(servers)) =>
    issuer.token({
      sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/assistant/session/${session}`,
      plat_session: session,
      scope: names.map((name) => `tools:${name}`).join(' '),
    })
  const url = `${gateway.url}/mcp`
  const all = token()
  return {
    url,
    adminUrl: gateway.adminUrl,
    auditPath,
    async stop() {
      await gateway.drain()
    },
    token,
    send: (message, headers = {}) =>
      fetch(url, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${all}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          ...headers,
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
      }),
    records: () => wholeLines(auditPath).map((line) => JSON.parse(line).rec),
  }
}

const capabilities = { sampling: {}, elicitation: {}, roots: {} }
const elicited = { action: 'accept' as const, content: { username: 'alice', email: 'a@example.org', name: 'alice' } }
const sampled = { role: 'assistant' as const, model: 'none', content: { type: 'text' as const, text: 'a thought' } }

/** How a client finds the revision. */
export type Mode = 'legacy' | 'auto' | { readonly pin: '2026-07-28' }

/** Connects the official client, with a person and a model behind it. */
export async function connectClient({ url, token }: SharedFixture, mode: Mode, bearer = token()): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode }, capabilities })
  client.setRequestHandler('elicitation/create', () => elicited)
  client.setRequestHandler('sampling/createMessage', () => sampled)
  client.setRequestHandler('roots/list', () => ({ roots: [] }))
  const requestInit = { headers: { authorization: `Bearer ${bearer}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
  return client
}

/** Connects the client of the SDK's version 1. */
export async function connectOldClient({ url, token }: SharedFixture): Promise<OldClient> {
  const client = new OldClient({ name: 'test', version: '1' }, { capabilities })
  client.setRequestHandler(ElicitRequestSchema, () => elicited)
  client.setRequestHandler(CreateMessageRequestSchema, () => sampled)
  const requestInit = { headers: { authorization: `Bearer ${token()}` } }
  // The old SDK's own types disagree about optional members; connecting by name keeps the rest checked.
  await Reflect.apply(client.connect, client, [new OldTransport(new URL(url), { requestInit })])
  return client
}
