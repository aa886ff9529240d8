import assert from 'node:assert/strict'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { isObject, TestClock } from '@plat/core'
import { until } from '@plat/testkit/until'
import { isDenial, type RequestContext, Snapshots } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { read } from './read.ts'
import { noModels, noUploads } from './testing.ts'
import { readMultipart } from './uploads/read.ts'
import { SpoolFile } from './uploads/spool.ts'

const limits = { clock: new TestClock(), maxBodyBytes: 1000, bodyReadTimeoutMs: 1000 }

function arrival(method: string, path: string, body = ''): RequestContext {
  return {
    id: 'c',
    wire: {
      method,
      path,
      query: '',
      headers: { 'content-type': 'application/json' },
      body: Readable.from(body === '' ? [] : [Buffer.from(body)]),
      remote: '',
    },
    signal: new AbortController().signal,
    receivedAt: 0,
    snapshot: new Snapshots().current,
    retain: () => true,
  }
}

async function answer(method: string, path: string, body?: string): Promise<string> {
  const parsed = await read(arrival(method, path, body), testIdentity, {
    limits: { ...limits, ...noUploads },
    models: () => noModels,
    batches: null,
  })
  return isDenial(parsed) ? parsed.code : `${parsed.operation} ${parsed.server} ${parsed.name}`
}

test('route, operation and model are read from path and body', async () => {
  assert.equal(await answer('POST', '/llm/ns.agent/v1/chat/completions', '{"model":"m"}'), 'model.generate ns.agent m')
  assert.equal(await answer('GET', '/llm/small/v1/models'), 'model.info small null')
  assert.equal(await answer('GET', '/llm/small/v1/models/vendor/m-1:free'), 'model.info small vendor/m-1:free')
})

test('the name of a model cannot lead to another address of the upstream', async () => {
  const names = ['..', '../files', 'x/../../files', './x', 'x//y', 'x/', '%2e%2e/files', 'x?limit=1', 'x\\..\\y']
  for (const name of names) {
    assert.match(await answer('GET', `/llm/small/v1/models/${name}`), /^(?:not_found|unknown_route)$/, name)
  }
})

test('an unknown route, endpoint or method is refused', async () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ['GET', '/llm/', 'unknown_route'],
    ['GET', '/llm/small/models', 'unknown_route'],
    ['GET', '/llm/../v1/models', 'unknown_route'],
    ['GET', '/llm/a%2Fb/v1/models', 'unknown_route'],
    ['GET', '/llm/small/v1/chat/completions', 'method_not_allowed'],
    ['DELETE', '/llm/small/v1/models/m', 'method_not_allowed'],
    ['GET', '/llm/small/v1/messages/count_tokens', 'method_not_allowed'],
    ['POST', '/llm/small/v1/messages/batches', 'not_built'],
    ['GET', '/llm/small/v1/batches/batch_1', 'not_built'],
    ['POST', '/llm/v1/batches', 'not_built'],
    ['GET', '/llm/small/v1/containers/c/files/f/content', 'not_built'],
    ['POST', '/llm/small/v1/vector_stores', 'not_built'],
    ['POST', '/llm/small/v1/fine_tuning/jobs', 'not_found'],
  ]
  for (const [method, path, code] of cases) assert.equal(await answer(method, path), code, path)
})

test('a body that is too large or no JSON is refused', async () => {
  const chat = '/llm/small/v1/chat/completions'
  assert.equal(await answer('POST', chat, `{"model":"${'m'.repeat(1000)}"}`), 'body_too_large')
  assert.equal(await answer('POST', chat, '{"model":'), 'invalid_request')
})

test('an upload is refused as unavailable when its bytes cannot be written, wherever it fails, and the file is closed', async () => {
  const head = '--b\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
  // The larger one fails while it arrives, the other one at its end.
  for (const size of [200_000, 10]) {
    const handle = await open(import.meta.filename, 'r')
    const file = new SpoolFile(handle, { take: () => true, release() {} })
    const faults: unknown[] = []
    const request = arrival('POST', '/', `${head}${'x'.repeat(size)}\r\n--b--`)
    const ends: (() => void)[] = []
    const denial = await readMultipart(
      {
        ...request,
        wire: { ...request.wire, headers: { 'content-type': 'multipart/form-data; boundary=b' } },
        whenOver: (end) => void ends.push(end),
      },
      testIdentity,
      {
        ...{ ...limits, ...noUploads, maxUploadBytes: 1_000_000, spool: { open: async () => file } },
        onSpoolFault: ({ cause }) => void faults.push(cause),
      },
    )
    assert.ok(isDenial(denial))
    assert.deepEqual(
      [denial.code, faults.map((fault) => isObject(fault) && fault.code)],
      ['state_unavailable', ['EBADF']],
    )
    for (const end of ends) end()
    await until(() => handle.fd === -1, 'the end of the file')
  }
})
