import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { type TestIssuer, testIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'

const SCOPE = 'tools:notes tools:web agents:helper agents:other'

/** A session in namespace `default`, as `<agent>/<session>`. */
export type Name = `${string}/${string}`

/** Gateways in front of trusted agents that call tools while they respond. */
export interface CalleeFixture {
  readonly gateways: readonly GatewayProcess[]
  /** Work of an agent before it responds, by the text of the message. */
  readonly works: Map<string, () => Promise<unknown>>
  /** Starts one more gateway, with shared state if `config` sets it. */
  start(): Promise<GatewayProcess>
  /** Issues a token of a session delegated by these sessions, nearest first. */
  token(name: Name, delegators?: readonly Name[], more?: object): string
  /** Posts JSON-RPC to a path, and returns the response text. */
  post(token: string, at: string, body: object, gateway?: GatewayProcess): Promise<string>
  /** Calls the untrusted server, which labels the session. */
  read(token: string, gateway?: GatewayProcess): Promise<string>
  /** Returns whether the session has the label of foreign content. */
  isLabelled(token: string, gateway?: GatewayProcess): Promise<boolean>
  close(): Promise<void>
}

/** `config` is merged over the gateway.json of each gateway; `dir` is the folder of their files. */
export async function calleeFixture(config: (dir: string) => object = () => ({})): Promise<CalleeFixture> {
  const issuer = testIssuer()
  const dir = tempFolder()
  const works: CalleeFixture['works'] = new Map()
  const agent = await startTestAgent({ work: async (text) => void (await works.get(text)?.()) })
  const upstream = await answeringUpstream()
  const files = await writeFiles(dir, { agentURL: agent.url, upstreamURL: upstream.url })
  const gateways: GatewayProcess[] = []
  const post: CalleeFixture['post'] = async (token, at, body, gateway = gateways[0]) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'a2a-version': '1.0',
    }
    const response = await fetch(`${gateway?.url}${at}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return response.text()
  }
  const call = (tool: string, server: string, token: string, gateway?: GatewayProcess) =>
    post(token, `/mcp/${server}`, rpc('tools/call', { name: tool, arguments: {} }), gateway)
  return {
    gateways,
    works,
    async start() {
      const gateway = await startGatewayProcess({ servers: {}, issuer, config: { ...files, ...config(dir) } })
      gateways.push(gateway)
      return gateway
    },
    token: (name, delegators = [], more = {}) => tokenOf(issuer, name, delegators, more),
    post,
    read: (token, gateway) => call('look', 'web', token, gateway),
    async isLabelled(token, gateway) {
      const text = await call('probe', 'notes', token, gateway)
      return text.includes('"error":"policy_denied"')
    },
    async close() {
      await Promise.all(gateways.map((gateway) => gateway.close()))
      await Promise.all([agent.close(), upstream.close()])
    },
  }
}

const rules = [
  { name: 'all', action: 'allow' },
  { name: 'stop', action: 'deny', match: { taints: ['untrusted-input'], tools: ['probe'] } },
]

/** Writes the files named in gateway.json. */
async function writeFiles(dir: string, { agentURL, upstreamURL }: { agentURL: string; upstreamURL: string }) {
  const plain = { url: upstreamURL, namespaces: [], implicit: false, dataClass: 'internal', auth: { type: 'none' } }
  const servers = { 'default/notes': { ...plain, trust: 'trusted' }, 'default/web': { ...plain, trust: 'untrusted' } }
  const exposure = { endpoint: agentURL, allowedCallers: [], skills: [], streaming: true, version: '1.0.0' }
  const agents = {
    'default/helper': { ...exposure, trust: 'trusted' },
    'default/other': { ...exposure, trust: 'trusted' },
  }
  const policies = ['assistant', 'helper', 'other', 'deep'].map((name) =>
    testPolicy({ name: `default/${name}`, agents: [name], rules }),
  )
  const file = async (name: string, text: string) => {
    await writeFile(path.join(dir, name), text)
    return path.join(dir, name)
  }
  return {
    upstreamsFile: await file('upstreams.json', JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} })),
    policyFile: await file('policies.json', policiesFile(policies)),
    a2a: {
      routesFile: await file('agents.json', JSON.stringify({ version: 1, agents })),
      pushNotificationHosts: ['hooks.example.com'],
    },
    taintStorePath: path.join(dir, 'taints.jsonl'),
    auditPath: path.join(dir, 'audit.jsonl'),
  }
}

/** A server that responds to every tool call. */
async function answeringUpstream(): Promise<ScriptedUpstream> {
  const upstream = await startScriptedUpstream()
  upstream.answers(({ body }, response) => {
    const { id } = JSON.parse(body)
    const result = { content: [{ type: 'text', text: 'done' }] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  return upstream
}

function tokenOf(issuer: TestIssuer, name: Name, delegators: readonly Name[], more: object): string {
  const [agent = '', session = ''] = name.split('/')
  const user: object = { sub: 'user:ada' }
  const act = delegators.toReversed().reduce((below, one) => ({ sub: spiffeId(one), act: below }), user)
  const jtis = delegators.map((one) => `token of ${one}`)
  const delegated = { plat_delegator_jti: jtis[0], plat_delegation_jtis: jtis }
  const own = { sub: spiffeId(name), plat_agent: agent, plat_session: session, act, scope: SCOPE }
  return issuer.token({ ...own, ...(jtis.length > 0 && delegated), ...more })
}

function spiffeId(name: Name): string {
  const [agent, session] = name.split('/')
  return `spiffe://plat.local/ns/default/agent/${agent}/session/${session}`
}

/** Builds a JSON-RPC request. */
export function rpc(method: string, params: object = {}): object {
  return { jsonrpc: '2.0', id: 1, method, params }
}

/** Builds the parameters of a message with this text. */
export function messageParams(text: string, message: object = {}, more: object = {}): object {
  return { message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text }], ...message }, ...more }
}
