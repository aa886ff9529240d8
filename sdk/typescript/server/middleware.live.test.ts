import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import { type TestContext, test } from 'node:test'
import { testIssuer } from '@plat/testkit/identity'
import { closed, listening } from '@plat/testkit/local'
import {
  callerOf,
  createTokenVerifier,
  currentTraceparent,
  expressMiddleware,
  fastifyHook,
  honoMiddleware,
} from '../index.ts'

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

// The frameworks come with other packages, without types.
const load = createRequire(import.meta.url)

function setUp() {
  const issuer = testIssuer()
  const pem = issuer.signer.publicKey.key.export({ type: 'spki', format: 'pem' }).toString()
  const verifier = createTokenVerifier({ trust: { publicKeys: [pem] }, audience: 'plat-gateway' })
  return { issuer, options: { verifier, url: 'https://server.example' } }
}

/** The caller and the trace of a request, after other work of the server. */
async function facts(request: object) {
  await new Promise((resolve) => setImmediate(resolve))
  return { user: callerOf(request).user, trace: currentTraceparent() }
}

async function judge(url: string, token: string): Promise<void> {
  const authorized = { authorization: `Bearer ${token}` }
  const response = await fetch(url, { headers: { ...authorized, traceparent: TRACE } })
  assert.deepEqual(await response.json(), { user: 'ada', trace: TRACE })
  const plain = await fetch(url, { headers: { ...authorized, traceparent: 'made up' } })
  assert.deepEqual(await plain.json(), { user: 'ada', trace: null })
  const refused = await fetch(url)
  assert.deepEqual([refused.status, refused.headers.get('www-authenticate')], [401, 'Bearer realm="plat"'])
  const invalid = await fetch(url, { headers: { authorization: 'Bearer x' } })
  assert.equal(invalid.headers.get('www-authenticate'), 'Bearer realm="plat", error="invalid_token"')
  assert.equal(Object(await invalid.json()).error, 'invalid_token')
}

async function serving(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  t.after(() => closed(server))
  return `http://127.0.0.1:${await listening(server)}/who?x=1`
}

test('Express serves verified callers, with their trace', async (t) => {
  const { issuer, options } = setUp()
  const app = load('express')()
  app.use(expressMiddleware(options))
  app.get('/who', async (request: object, response: { json(body: object): void }) =>
    response.json(await facts(request)),
  )
  await judge(await serving(t, app), issuer.token())
})

test('Fastify serves verified callers, with their trace', async (t) => {
  const { issuer, options } = setUp()
  const app = load('fastify')()
  app.addHook('onRequest', fastifyHook(options))
  app.get('/who', (request: object) => facts(request))
  t.after(() => app.close())
  await judge(`${await app.listen({ port: 0, host: '127.0.0.1' })}/who?x=1`, issuer.token())
})

test('Hono serves verified callers, with their trace', async (t) => {
  const { issuer, options } = setUp()
  const { Hono } = load('hono')
  const { getRequestListener } = load('@hono/node-server')
  const app = new Hono()
  app.use(honoMiddleware(options))
  app.get('/who', async (context: { req: { raw: Request }; json(body: object): Response }) =>
    context.json(await facts(context.req.raw)),
  )
  await judge(await serving(t, getRequestListener(app.fetch)), issuer.token())
})

test('a request that did not pass the middleware has no caller', () => {
  assert.throws(() => callerOf({}), /did not pass the middleware/)
})
