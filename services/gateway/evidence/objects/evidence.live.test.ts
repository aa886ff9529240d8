import assert from 'node:assert/strict'
import { chmod, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { JsonObject } from '@plat/core'
import { readPublicKeys } from '@plat/keys'
import { verifyEvidence } from '@plat/ledger'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { AUDIENCE, provider } from '../../testing/people.ts'
import { started, TOKEN } from '../../testing/started.ts'
import { keyFiles } from '../audit/testing/keys.ts'

/** A gateway with a signed ledger, a client, and the published keys. */
async function setUp(t: TestContext, own: object = {}) {
  const { uri } = await keyFiles()
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const { gateway } = await started(t, { auditPath, auditCheckpointKey: uri, ...own })
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const send = (method: string, path: string, body?: object) =>
    fetch(`${gateway.adminUrl}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const ask = async (
    method: string,
    path: string,
    body?: object,
  ): Promise<JsonObject & { readonly status: number }> => {
    const response = await send(method, path, body)
    return { ...Object(await response.json()), status: response.status }
  }
  const jwks = await (await send('GET', '/v1/audit/jwks')).text()
  const verify = (bytes: Uint8Array) =>
    verifyEvidence(bytes, { keys: readPublicKeys(jwks, 'jwks'), hmacKey: null, logKeys: null })
  const fetched = async (id: unknown) => (await send('GET', `/v1/evidence/${id}/object`)).bytes()
  /** Writes records of namespace `shop`, two per call. */
  const act = async (...agents: string[]) => {
    for (const agent of agents) {
      assert.equal((await send('POST', '/v1/revocations', { target: { agent: `shop/${agent}` } })).status, 201)
    }
  }
  return { auditPath, ask, verify, fetched, act, gateway }
}

function failsWith(found: unknown, why: RegExp): void {
  assert.match(typeof found === 'string' ? found : 'it holds', why)
}

test('an object for a range contains all its records, and verifies with the public keys only', async (t) => {
  // Shows D3.sessions.evidence.dir.
  const dir = join(tempFolder(), 'evidence')
  const { auditPath, ask, verify, fetched, act } = await setUp(t, { evidence: { dir } })
  await act('a', 'b', 'c')
  const made = await ask('POST', '/v1/evidence', { from: '1', to: '4' })
  assert.deepEqual([made.status, made.from, made.to, made.records, made.anchored], [201, 1, 4, 4, false])
  const bytes = await fetched(made.id)
  const found = await verify(bytes)
  assert.ok(typeof found !== 'string', String(found))
  assert.deepEqual([found.whole, found.anchored, found.head.by], [true, false, 'token:admin'])
  const lines = Buffer.from(bytes).toString().split('\n')
  assert.deepEqual(lines.slice(1, 5), wholeLines(auditPath).slice(1, 5))
  assert.deepEqual(await readFile(join(dir, `${made.id}.evidence`)), Buffer.from(bytes))
  assert.deepEqual(await readdir(dir), [`${made.id}.evidence`])
  const recorded = () => wholeLines(auditPath).some((line) => line.includes(`"sha256":"${made.sha256}"`))
  await until(recorded, 'the record of the object')
  // Records left out of such a range are detected, whatever seals it.
  const all = await ask('POST', '/v1/evidence', {})
  const whole = await verify(await fetched(all.id))
  assert.ok(
    typeof whole === 'object' && whole.whole && whole.head.from === 0 && whole.head.records === whole.head.to + 1,
  )
})

test('records of one session or agent are selected from their range, each with a proof to the checkpoint', async (t) => {
  const { ask, verify, fetched, act } = await setUp(t)
  await act('a', 'b', 'a')
  const kind = 'revocation'
  assert.equal((await ask('POST', '/v1/evidence', { namespace: 'elsewhere', kind })).status, 404)
  const some = await ask('POST', '/v1/evidence', { namespace: 'shop', kind })
  assert.deepEqual([some.records, some.about], [3, { namespace: 'shop', kind }])
  const found = await verify(await fetched(some.id))
  assert.ok(typeof found === 'object' && !found.whole, String(found))
  assert.equal((await ask('POST', '/v1/evidence', { from: 'yesterday' })).status, 400)
  assert.equal((await ask('POST', '/v1/evidence', { user: 'ada' })).status, 400)
  assert.equal((await ask('POST', '/v1/evidence', { from: '900000' })).status, 404)
})

test('an auditor of one namespace makes and reads objects of that namespace only', async (t) => {
  const people = await provider(t)
  const { ask, act, gateway } = await setUp(t, {
    adminAuth: {
      mode: 'both',
      namespaceRoles: { shop: { auditor: ['user:ada'] }, bank: { auditor: ['user:bob'] } },
      oidc: { issuer: people.state.issuer, audience: AUDIENCE },
    },
  })
  await act('a')
  const { id } = await ask('POST', '/v1/evidence', { namespace: 'shop' })
  const { id: whole } = await ask('POST', '/v1/evidence', {})
  const statuses = async (user: string) => {
    const headers = { authorization: `Bearer ${await people.token({ preferred_username: user })}` }
    const paths = [id, `${id}/object`, whole, `${whole}/object`]
    const read = paths.map((path) => fetch(`${gateway.adminUrl}/v1/evidence/${path}`, { headers }))
    const list = await fetch(`${gateway.adminUrl}/v1/evidence`, { headers })
    const { items } = JSON.parse(await list.text())
    const made = await fetch(`${gateway.adminUrl}/v1/evidence`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ namespace: 'shop' }),
    })
    return [...(await Promise.all(read)).map(({ status }) => status), items.length, made.status]
  }
  assert.deepEqual(await statuses('ada'), [200, 200, 404, 404, 1, 201])
  assert.deepEqual((await statuses('bob')).slice(0, 5), [404, 404, 404, 404, 0])
  assert.ok([403, 404].includes((await statuses('bob')).at(-1)))
})

test('a changed byte anywhere in an object is detected, and so are removed, added and moved lines', async (t) => {
  const { ask, verify, fetched, act } = await setUp(t)
  await act('a', 'b')
  const { id } = await ask('POST', '/v1/evidence', { kind: 'revocation' })
  const bytes = Buffer.from(await fetched(id))
  assert.equal(typeof (await verify(bytes)), 'object')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.equal(typeof (await verify(changed)), 'string', `byte ${at}`)
  }
  const lines = bytes.toString().trimEnd().split('\n')
  const of = (some: readonly string[]) => Buffer.from(some.map((line) => `${line}\n`).join(''))
  for (let at = 0; at < lines.length; at++) {
    assert.equal(typeof (await verify(of(lines.toSpliced(at, 1)))), 'string', `without line ${at}`)
    assert.equal(typeof (await verify(of(lines.toSpliced(at, 0, lines[at] ?? '')))), 'string', `line ${at} twice`)
  }
  failsWith(await verify(bytes.subarray(0, -1)), /not an evidence object/)
  failsWith(await verify(Buffer.concat([bytes, bytes])), /./)
  failsWith(await verify(Buffer.alloc(0)), /not an evidence object/)
})

test('objects are listed, the newest first, and never overwritten', async (t) => {
  const { ask, auditPath, act } = await setUp(t)
  await act('a')
  const ids: unknown[] = []
  for (let n = 0; n < 3; n++) ids.unshift((await ask('POST', '/v1/evidence', { to: '1' })).id)
  const first = await ask('GET', '/v1/evidence?limit=2')
  const rest = await ask('GET', `/v1/evidence?limit=2&cursor=${first.nextCursor}`)
  const listed = [first, rest].flatMap(({ items }) => (Array.isArray(items) ? items.map(({ id }) => id) : []))
  assert.deepEqual([listed, rest.nextCursor], [ids, null])
  assert.equal((await ask('GET', `/v1/evidence/${ids[0]}`)).records, 2)
  for (const strange of ['nothing', '..', '0193a0b0-0000-7000-8000-000000000000'])
    assert.equal((await ask('GET', `/v1/evidence/${strange}`)).status, 404)
  // Invalid files are not listed.
  await writeFile(join(`${auditPath}.evidence`, '0193a0b0-0000-7000-8000-000000000000.evidence'), '{}\n')
  assert.equal(Object(await ask('GET', '/v1/evidence')).items.length, 3)
})

test('an oversized object is refused naming the record at the limit, and leaves no file', async (t) => {
  // Shows D3.sessions.evidence.maxBytes.
  const { ask, auditPath, act } = await setUp(t, { evidence: { maxBytes: 6000 } })
  await act('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')
  const { status, message } = await ask('POST', '/v1/evidence', {})
  assert.equal(status, 413)
  assert.match(String(message), /6000 bytes of evidence.maxBytes at record \d+: request a smaller range/)
  await assert.rejects(readdir(`${auditPath}.evidence`), /ENOENT/)
  assert.equal((await ask('POST', '/v1/evidence', { to: '1' })).status, 201)
})

test('no object is made without a checkpoint key, or if it cannot be stored', async (t) => {
  const { ask, act } = await setUp(t, { auditCheckpointKey: '' })
  await act('a')
  const { status, message } = await ask('POST', '/v1/evidence', {})
  assert.deepEqual([status, message], [409, 'checkpoints are what proves evidence: set auditCheckpointKey'])
  const file = join(tempFolder(), 'file')
  await writeFile(file, '')
  await chmod(file, 0o400)
  const other = await setUp(t, { evidence: { dir: join(file, 'below') } })
  await other.act('a')
  assert.equal((await other.ask('POST', '/v1/evidence', {})).status, 503)
})
