import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { wholeLines } from '@plat/testkit/ledger'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { started } from './started.ts'

/** A request that every endpoint accepts. */
export const chat = { model: 'small-1', messages: [{ role: 'user', content: 'hi' }] }

/** A gateway with one route over these endpoints, in this order; `more` has further keys of gateway.json, `keys` of the route. */
export async function routeOver(t: TestContext, endpoints: readonly object[], more: object = {}, keys: object = {}) {
  const [first, ...fallbacks] = endpoints
  const dir = tempFolder()
  const auditPath = join(dir, 'audit.jsonl')
  const models = { r: { ...first, fallbacks, ...keys } }
  const { gateway, issuer } = await started(t, { models, auditPath, ...more })
  const token = issuer.token({ scope: 'models:r' })
  const ask = async (body: object = chat, signal?: AbortSignal) => {
    const response = await fetch(`${gateway.url}/llm/r/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      ...(signal !== undefined && { signal }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  /** A GET below the route's `/v1/`. */
  const fetchAt = (path: string) =>
    fetch(`${gateway.url}/llm/r/v1/${path}`, { headers: { authorization: `Bearer ${token}` } })
  const outcomes = async () =>
    wholeLines(auditPath)
      .map((line) => JSON.parse(line).rec)
      .filter((record) => record.kind === 'outcome')
  const series = async (name: string) =>
    (await (await fetch(`${gateway.url}/metrics`)).text())
      .split('\n')
      .filter((line) => line.startsWith(`plat_gateway_model_${name}`))
  return { ask, fetchAt, outcomes, series }
}

/** A model server. */
export async function model(t: TestContext): Promise<ModelServer> {
  const server = await startModelServer()
  t.after(() => server.close())
  return server
}

/** A scripted upstream; `url` is `/v1` of its address. */
export async function scripted(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().once('end', () => answer(request, response))
  })
  const port = await listening(server)
  t.after(() => closed(server))
  return `http://127.0.0.1:${port}/v1`
}

/** Headers of a JSON response. */
export const json = { 'content-type': 'application/json' }
