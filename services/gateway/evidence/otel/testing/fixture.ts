import type { TestContext } from 'node:test'
import { type GatewayProcess, type GatewaySetup, startGatewayProcess } from '@plat/testkit/gateway'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { startCollector, type TestCollector } from './collector.ts'

/** A trace begun by a caller. */
export const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
export const CALLER = '00f067aa0ba902b7'

/** A gateway with a collector, a tool server and a model. */
export interface TelemetryFixture {
  readonly gateway: GatewayProcess
  readonly collector: TestCollector
  readonly notes: ScriptedUpstream
  readonly model: ModelServer
  /** Calls a tool with arguments. */
  call(options?: TelemetryRequest): Promise<{ readonly decision: string; readonly text: string }>
  metrics(): Promise<string>
}

export interface TelemetryRequest {
  readonly tool?: string
  readonly args?: object
  readonly meta?: object
  readonly headers?: Readonly<Record<string, string>>
  /** Raw body instead of a tool call. */
  readonly body?: string
}

export const ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'

/** Starts all of them; `otel` is merged over the defaults. */
export async function startFixture(
  t: TestContext,
  otel: object,
  own: Partial<GatewaySetup> = {},
): Promise<TelemetryFixture> {
  const collector = await startCollector(t)
  const notes = await startScriptedUpstream()
  t.after(() => notes.close())
  notes.answers(json(ANSWER))
  const model = await startModelServer()
  t.after(() => model.close())
  const gateway = await startGatewayProcess({
    servers: { notes: notes.url },
    denied: ['forbidden'],
    scopes: ['models:small'],
    ...own,
    config: {
      models: { small: { upstream: model.url } },
      otel: { enabled: true, endpoint: collector.url, exportIntervalMillis: 20, ...otel },
      ...own.config,
    },
  })
  t.after(() => gateway.close())
  return {
    gateway,
    collector,
    notes,
    model,
    async call({ tool = 'read', args = {}, meta, headers = {}, body } = {}) {
      const params = { name: tool, arguments: args, ...(meta && { _meta: meta }) }
      const response = await fetch(`${gateway.url}/mcp/notes`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${gateway.token}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          ...headers,
        },
        body: body ?? JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      })
      return { decision: response.headers.get('x-plat-decision-id') ?? '', text: await response.text() }
    },
    metrics: async () => (await fetch(`${gateway.url}/metrics`)).text(),
  }
}
