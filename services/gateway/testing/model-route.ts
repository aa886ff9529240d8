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
  const scope = 'models:r'
  const token = issuer.token({ scope })
  const send = async (request: RequestInit & { readonly headers?: Record<string, string> }, path: string) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...request.headers }
    const response = await fetch(`${gateway.url}/llm/r/v1/${path}`, { ...request, method: 'POST', headers })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const ask = (body: object = chat, signal?: AbortSignal) =>
    send({ body: JSON.stringify(body), ...(signal !== undefined && { signal }) }, 'chat/completions')
  /** A caller with other claims; `headers` and `path` of its requests. */
  const as =
    (claims: object, headers: Record<string, string> = {}, path = 'chat/completions') =>
    (body: object = chat) =>
      send(
        {
          body: JSON.stringify(body),
          headers: { authorization: `Bearer ${issuer.token({ scope, ...claims })}`, ...headers },
        },
        path,
      )
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
  return { gateway, ask, as, fetchAt, outcomes, series }
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
