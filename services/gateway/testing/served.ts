import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { testProver } from '@plat/testkit/dpop'
import type { TestIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { startModelServer } from '@plat/testkit/model-server'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { certified, keyOf } from './certified.ts'
import { started, TOKEN } from './started.ts'

const PUBLIC = 'https://gateway.example'
const ME = 'spiffe://plat.local/ns/default/agent/assistant/session/s1'
const SERVERS = ['notes', 'dead', 'strict', 'asking', 'learning']
const SCOPE = [...SERVERS.map((name) => `tools:${name}`), 'tools:nobody', 'models:open'].join(' ')

/** A gateway over TLS that has served calls of every kind, so that every series of what is built has an event. */
export interface Served {
  /** Resolves to the current response of `GET /metrics`. */
  metrics(): Promise<string>
}

/** Starts it, and makes the calls: each verdict, each kind of token, proof and certificate, each event of a pin, a model, a revocation. */
export async function served(t: TestContext): Promise<Served> {
  const certificates = await certified()
  const { gateway, issuer } = await started(t, await configured(t, certificates.files))
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  const send: Send = async (path, { body, headers = {}, svid }) => {
    const { bytes } = await dialer.fetchBytes(gateway.url.replace('127.0.0.1', 'localhost') + path, 'mcp', {
      caPEM: certificates.server.pem,
      ...(svid && { clientCert: { certPEM: svid.pem, keyPEM: keyOf(svid) } }),
      headers: {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        connection: 'close',
        ...headers,
      },
      ...(body !== undefined && { method: 'POST' as const, body: JSON.stringify(body) }),
      maxBytes: 1_000_000,
      timeoutMs: 60_000,
    })
    return Buffer.from(bytes).toString()
  }
  await everyToken(send, issuer)
  await everyProof(send, issuer)
  for (const svid of await svidsOf(certificates))
    await send('/mcp/notes', { ...as(issuer.token({ scope: SCOPE })), svid })
  await everyCall(send, issuer)
  await revoked(send, issuer)
  return { metrics: () => send('/metrics', as(TOKEN, null)) }
}

interface Wanted {
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly svid?: Issued
}

type Send = (path: string, wanted: Wanted) => Promise<string>

const callOf = (name: string) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } })

/** A request with a bearer token; without a body it is a GET. */
function as(token: string, body: object | null = callOf('read')): Wanted {
  return { headers: { authorization: `Bearer ${token}` }, ...(body !== null && { body }) }
}

async function everyToken(send: Send, issuer: TestIssuer): Promise<void> {
  await send('/mcp/notes', { body: callOf('read') })
  // Values that are invalid in a header never reach the gateway.
  const invalid = issuer.invalid().filter(({ token }) => /^[\x21-\x7e]{1,8192}$/.test(token))
  const oneOfEach = new Map(invalid.map((one) => [one.reason, one.token]))
  for (const token of oneOfEach.values()) await send('/mcp/notes', as(token))
}

async function everyProof(send: Send, issuer: TestIssuer): Promise<void> {
  const prover = testProver()
  const token = issuer.token({ scope: SCOPE, cnf: { jkt: prover.jkt } })
  const proof = prover.proof(`${PUBLIC}/mcp/notes`, token)
  const proofs = [proof, proof, prover.proof(`${PUBLIC}/elsewhere`, token), null]
  for (const dpop of proofs) {
    await send('/mcp/notes', {
      headers: { authorization: `DPoP ${token}`, ...(dpop !== null && { dpop }) },
      body: callOf('read'),
    })
  }
}

async function everyCall(send: Send, issuer: TestIssuer): Promise<void> {
  const token = issuer.token({ scope: SCOPE })
  const list = { jsonrpc: '2.0', id: 2, method: 'tools/list', params: {} }
  for (const name of [...SERVERS, 'nobody', 'unscoped']) {
    await send(`/mcp/${name}`, as(token, list))
    await send(`/mcp/${name}`, as(token))
  }
  for (const tool of ['forbidden', 'careful']) await send('/mcp/notes', as(token, callOf(tool)))
  await send('/mcp/notes', as(token, { jsonrpc: '2.0', method: 'notifications/initialized' }))
  await send('/mcp/notes', as(token, { jsonrpc: '2.0', id: 3, method: 'of/nobody' }))
  const chat = { model: 'small-1', messages: [{ role: 'user', content: 'my card is 4111 1111 1111 1111' }] }
  await send('/llm/open/v1/chat/completions', as(token, chat))
}

async function revoked(send: Send, issuer: TestIssuer): Promise<void> {
  await send('/v1/revocations', as(TOKEN, { target: { session: 'default/assistant/s9' }, reason: 'test' }))
  const sub = ME.replace(/s1$/, 's9')
  await send('/mcp/notes', as(issuer.token({ scope: SCOPE, sub, plat_session: 's9' })))
}

/** One certificate of each kind that a caller may show. */
async function svidsOf({ clients, now }: Pick<Awaited<ReturnType<typeof certified>>, 'clients' | 'now'>) {
  const strangers = await createAuthority({ name: 'strangers', now })
  return [
    await clients.issue({ name: 'svid', uris: [ME] }),
    await clients.issue({ name: 'svid', uris: [ME.replace(/s1$/, 's2')] }),
    await strangers.issue({ name: 'svid', uris: [ME] }),
  ]
}

async function configured(t: TestContext, tls: object): Promise<object> {
  const dir = tempFolder()
  const upstream = await answering(t)
  const model = await startModelServer()
  t.after(() => model.close())
  await writeFile(join(dir, 'upstreams.json'), JSON.stringify(upstreamsFile(upstream.url)))
  await writeFile(join(dir, 'policies.json'), policyFile())
  return {
    tls: { ...tls, svidMode: 'optional' },
    dpop: { publicURL: PUBLIC },
    upstreams: {},
    upstreamsFile: join(dir, 'upstreams.json'),
    policyFile: join(dir, 'policies.json'),
    approvalTimeoutSeconds: 1,
    guards: [{ name: 'away', type: 'http-json', url: 'http://127.0.0.1:9/', tools: ['read'] }],
    models: { open: { upstream: model.url } },
    dlpProfiles: { watch: { requestAction: 'audit' } },
    dlp: { models: { open: 'watch' } },
  }
}

/** An upstream with one tool. */
async function answering(t: TestContext): Promise<ScriptedUpstream> {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const { id, method } = JSON.parse(request.body)
    if (id === undefined) return void response.writeHead(202).end()
    const tools = [{ name: 'read', inputSchema: { type: 'object' } }]
    const result = method === 'tools/list' ? { tools } : { content: [] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  return upstream
}

function upstreamsFile(url: string): object {
  const plain = { namespaces: [], implicit: false, trust: 'trusted', dataClass: 'internal', auth: { type: 'none' } }
  const enforce = { mode: 'enforce', allowUnpinned: false, pins: { read: [`sha256:${'0'.repeat(64)}`] } }
  const servers = {
    'default/notes': { url, ...plain, toolLabels: { read: { taints: ['seen'] } } },
    'default/dead': { url: 'http://127.0.0.1:9/mcp', ...plain },
    'default/strict': { url, ...plain, pins: { ...enforce, onChange: 'hide' } },
    'default/asking': { url, ...plain, pins: { ...enforce, onChange: 'approve' } },
    'default/learning': { url, ...plain, pins: { ...enforce, onChange: 'hide', mode: 'learn', pins: {} } },
  }
  return { version: 1, servers, bindings: {}, agentWeb: {} }
}

function policyFile(): string {
  const rules = [
    { name: 'all', action: 'allow' },
    { name: 'no', action: 'deny', match: { tools: ['forbidden'] } },
    { name: 'ask', action: 'require_approval', match: { tools: ['careful'] } },
  ]
  return policiesFile([testPolicy({ rules })])
}
