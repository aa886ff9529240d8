import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { JsonObject } from '@plat/core'
import type { Log } from '@plat/process'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from './started.ts'

/** A request that a receiver got. */
export interface ReceivedMessage {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A receiver of notifications over a real socket. */
export interface Receiver {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly received: readonly ReceivedMessage[]
  /** From now on answers so; null: never. */
  answers(status: number | null, headers?: Readonly<Record<string, string>>): void
  /** The first message that fits, once it has come. */
  first(fits: (message: ReceivedMessage) => boolean): Promise<ReceivedMessage>
}

export async function receiver(t: TestContext): Promise<Receiver> {
  const received: ReceivedMessage[] = []
  let status: number | null = 200
  let more: Readonly<Record<string, string>> = {}
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', url: path = '', headers } = request
    received.push({ method, path, headers, body: Buffer.concat(chunks).toString('utf8') })
    if (status !== null) response.writeHead(status, more).end('ok')
  })
  const port = await listening(server)
  t.after(() => closed(server))
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    answers(next, headers = {}) {
      status = next
      more = headers
    },
    async first(fits) {
      await until(() => received.some(fits), 'a message')
      return received.find(fits) ?? assert.fail()
    },
  }
}

/** The rule of these gateways: deleting needs an approval. */
export const POLICIES = policiesFile([
  testPolicy({
    name: 'default/assistant',
    rules: [
      { name: 'all', action: 'allow', match: { tools: ['add'] } },
      { name: 'delete', action: 'require_approval', match: { tools: ['delete'] }, reason: 'somebody looks first' },
    ],
  }),
])

/** A call of tool `delete`, as an agent makes it. */
export function callOf(secret: string): string {
  const params = { name: 'delete', arguments: { name: secret } }
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
}

export interface ApprovalFixture {
  readonly url: string
  readonly auditPath: string
  /** Makes a call that waits for an approval; `answer` resolves to the final response to the agent. */
  hold(secret?: string, user?: string): Promise<{ readonly id: string; readonly answer: Promise<string> }>
  /** Makes a call for this user, and resolves to the final response to the agent. */
  call(secret: string, user: string): Promise<string>
  /** Sends a request to the admin API. */
  admin(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly body: JsonObject }>
  callback(name: string, sent: { readonly headers: Record<string, string>; readonly body: string }): Promise<CallResult>
}

export interface CallResult {
  readonly status: number
  readonly body: JsonObject
}

/** A gateway whose tool `delete` needs an approval, with these keys of gateway.json. */
export async function gatewayWith(t: TestContext, own: object, log?: Log): Promise<ApprovalFixture> {
  const dir = tempFolder()
  const policyFile = join(dir, 'policies.json')
  await writeFile(policyFile, POLICIES)
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((_, response) => {
    const answer = { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'deleted' }] } }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  const auditPath = join(dir, 'audit.jsonl')
  const config = { policyFile, auditPath, upstreams: { notes: upstream.url }, adminAuth: DEV, ...QUICK, ...own }
  const { gateway, issuer } = await started(t, config, false, log && { log })
  const { url } = gateway
  const admin: ApprovalFixture['admin'] = (method, path, body) =>
    fetchJson(url + path, method, adminHeaders, body && JSON.stringify(body))
  const pendingIds = async () => {
    const { body } = await admin('GET', '/v1/approvals?state=pending')
    return (Array.isArray(body.items) ? body.items : []).map(({ id }) => String(id))
  }
  const call = async (secret: string, user: string) => {
    const token = issuer.token({ scope: 'tools:notes', act: { sub: `user:${user}` } })
    const headers = { ...agentHeaders, authorization: `Bearer ${token}` }
    const response = await fetch(`${url}/mcp/notes`, { method: 'POST', headers, body: callOf(secret) })
    return response.text()
  }
  return {
    url,
    auditPath,
    admin,
    callback: (name, { headers, body }) => fetchJson(`${url}/v1/notifiers/${name}/callback`, 'POST', headers, body),
    call,
    async hold(secret = 'a', user = 'uma') {
      const before = new Set(await pendingIds())
      const answer = call(secret, user)
      answer.catch(() => {})
      let id: string | undefined
      await until(async () => {
        id = (await pendingIds()).find((one) => !before.has(one))
        return id !== undefined
      }, 'an approval')
      return { id: id ?? '', answer }
    },
  }
}

/** Calls that still wait when a test is over are not waited for. */
const QUICK = { shutdownTimeoutSeconds: 0 }
const DEV = { mode: 'token', devTokenApprovers: true }
const agentHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const adminHeaders = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }

async function fetchJson(
  url: string,
  method: string,
  headers: Record<string, string>,
  body: string | undefined,
): Promise<CallResult> {
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) })
  const answer: unknown = JSON.parse((await response.text()) || '{}')
  assert.ok(typeof answer === 'object' && answer !== null)
  return { status: response.status, body: Object.fromEntries(Object.entries(answer)) }
}
