import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type Clock, systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import {
  type BuiltinServer,
  type Caller,
  type CallRequirements,
  isDenial,
  Snapshots,
  type ToolResult,
} from '../../../call/index.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { configWith, problemsWith } from '../../../testing/configured.ts'
import { createK8sOps, type K8sOpsConfig } from '../index.ts'

/** A request received by the API server. */
export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
}

/** Result of a tool call: its texts, `error: …` for a failure, or code and reason of a denial. */
export type CallResult = readonly string[] | string

export interface ClusterFixture {
  readonly url: string
  readonly server: BuiltinServer
  /** All requests except for kind lists. */
  readonly seen: readonly ReceivedRequest[]
  /** Rewrites the token file. */
  token(text: string): Promise<void>
  requirements(tool: string, args: object): CallRequirements | null
  /** Calls a tool as the gateway does, with its checks first. */
  call(tool: string, args: object, signal?: AbortSignal): Promise<CallResult>
  result(tool: string, args: object): Promise<ToolResult>
}

type ApiResponse = (seen: ReceivedRequest, response: ServerResponse) => void

export interface ClusterSetup {
  /** Keys of `k8sOps`. */
  readonly config?: object
  /** Responds to requests other than kind lists. */
  readonly answer?: ApiResponse
  readonly clock?: Clock
  /** Certificate and key for TLS, and the file of the CA. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string }
}

/** Kinds of the API server. */
const SERVED: Readonly<Record<string, readonly object[]>> = {
  '/api/v1': [
    { name: 'pods', kind: 'Pod', namespaced: true },
    { name: 'pods/log', kind: 'Pod', namespaced: true },
    { name: 'secrets', kind: 'Secret', namespaced: true },
    { name: 'nodes', kind: 'Node', namespaced: false },
    { name: 'configmaps', kind: 'ConfigMap', namespaced: true },
  ],
  '/apis/apps/v1': [{ name: 'deployments', kind: 'Deployment', namespaced: true }],
  '/apis/odd.example/v1': [
    { name: 'secrets', kind: 'Harmless', namespaced: true },
    { name: '../../api/v1/secrets', kind: 'Astray', namespaced: true },
  ],
}

/** The server `plat-k8s` with a small API server on loopback. */
export async function setUpCluster(t: TestContext, setup: ClusterSetup = {}): Promise<ClusterFixture> {
  const { answer = (_, response) => json(response, 200, {}), clock = systemClock, tls } = setup
  const seen: ReceivedRequest[] = []
  const dir = tempFolder()
  const listener: RequestListener = async (request, response) => {
    const url = new URL(request.url ?? '', 'http://cluster')
    const served = SERVED[url.pathname]
    if (served !== undefined) return json(response, 200, { kind: 'APIResourceList', resources: served })
    const text = Buffer.concat(await request.toArray()).toString()
    const received = {
      method: request.method ?? '',
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      body: text === '' ? null : JSON.parse(text),
    }
    seen.push(received)
    answer(received, response)
  }
  const cluster = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  t.after(() => closed(cluster))
  const url = `${tls === undefined ? 'http' : 'https'}://localhost:${await listening(cluster)}`
  const [tokenFile, caFile] = [join(dir, 'token'), join(dir, 'ca.pem')]
  await writeFile(tokenFile, 'the-token\n')
  if (tls !== undefined) await writeFile(caFile, tls.ca)
  const own = { enabled: true, apiServer: url, tokenFile, ...(tls !== undefined && { caFile }), ...setup.config }
  const dialer = createDialer({ clock, log: silentLog, lookup: async () => [{ address: '127.0.0.1', family: 4 }] })
  t.after(() => dialer.close())
  const server = await createK8sOps({ config: k8sConfig(own), env: {}, dialer, clock })
  if (server === null) assert.fail('k8sOps is not enabled')
  const toolOf = (name: string) =>
    server.tools(caller).find((one) => one.name === name) ?? assert.fail(`no tool ${name}`)
  return {
    url,
    server,
    seen,
    token: (text) => writeFile(tokenFile, text),
    requirements: (name, args) => toolOf(name).requirements(args),
    async call(name, args, signal = new AbortController().signal) {
      const tool = toolOf(name)
      const result =
        tool.judge(args, caller) ?? (await tool.run(args, { ...caller, signal, argsJson: null, retain: () => true }))
      if (isDenial(result)) return `${result.code}: ${result.reason}`
      const texts = result.content.map(({ text }) => text)
      return result.isError ? `error: ${texts.join()}` : texts
    },
    async result(name, args) {
      const result = await toolOf(name).run(args, {
        ...caller,
        signal: new AbortController().signal,
        argsJson: null,
        retain: () => true,
      })
      return isDenial(result) ? assert.fail(result.reason) : result
    },
  }
}

const caller: Caller = { identity: testIdentity, snapshot: new Snapshots().current }

/** Problems of a gateway.json with this `k8sOps`, one line each. */
export function problemsOf(k8sOps: object): readonly string[] {
  return problemsWith({ k8sOps })
}

/** `k8sOps` with defaults. */
export function k8sConfig(k8sOps: object): K8sOpsConfig {
  return configWith({ k8sOps }).k8sOps
}

export function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** An error status in the format of the API server. */
export function status(response: ServerResponse, code: number, message: string): void {
  json(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code })
}
