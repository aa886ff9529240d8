import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { S3_FAULTS, type S3Fault, type S3Server, startS3 } from '../testing/s3.ts'
import { type ArchiveConfig, createArchive } from './create.ts'

const SECRET = 'secret-key'

/** Writes a file of this size, of which no two parts are alike. */
function sourceOf(size: number): { readonly path: string; readonly bytes: Buffer } {
  const bytes = Buffer.alloc(size)
  for (let at = 0; at + 4 <= size; at += 4) bytes.writeUInt32LE((at * 2_654_435_761) % 4_294_967_296, at)
  const path = join(tempFolder(), 'audit.jsonl.00000000000000000000.jsonl')
  writeFileSync(path, bytes)
  return { path, bytes }
}

async function s3(t: TestContext, timeoutSeconds = 20, server?: S3Server) {
  server ??= await startS3(t, SECRET)
  const awsCredentialsDir = tempFolder()
  writeFileSync(join(awsCredentialsDir, 'access-key-id'), 'AKIA')
  writeFileSync(join(awsCredentialsDir, 'secret-access-key'), SECRET)
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  const archive = createArchive(
    { ...unset, archive: 's3', url: server.url, region: 'eu-1', awsCredentialsDir, timeoutSeconds },
    { dialer, clock: systemClock, clouds: { aws: () => Promise.reject(new Error('none')) } },
  )
  assert.ok(archive !== null)
  return { server, archive }
}

const unset: Omit<ArchiveConfig, 'archive'> = {
  ...{ path: '', url: '', region: '', caFile: '', awsCredentialsDir: '', timeoutSeconds: 20, jurisdiction: '' },
}

test('a file is stored in S3 as it is, in parts if it is large, and read back', async (t) => {
  const { server, archive } = await s3(t)
  for (const [size, requests] of [
    [1000, 2],
    [12 * 1024 * 1024, 8],
  ] as const) {
    server.requests.length = 0
    const { path, bytes } = sourceOf(size)
    const where = await archive.put(path, `id/${size}.jsonl`)
    assert.equal(where, `${server.url}/id/${size}.jsonl`)
    assert.ok(server.objects.get(new URL(where).pathname)?.equals(bytes))
    assert.equal(server.requests.length, requests, server.requests.join('\n'))
  }
})

test('a copy in S3 that differs, or is not completed, is refused, and nothing of the upload remains', async (t) => {
  const { server, archive } = await s3(t)
  const small = sourceOf(1000)
  const large = sourceOf(6 * 1024 * 1024)
  const put = (path: string) =>
    archive.put(path, 'id/x.jsonl').then(
      () => 'stored',
      (error: Error) => error.message,
    )
  server.behaves = 'corrupt'
  assert.match(await put(small.path), /x\.jsonl: the copy reads back differently/)
  assert.match(await put(large.path), /the copy reads back differently/)
  server.behaves = 'refuse'
  assert.match(await put(small.path), /x\.jsonl: status 403 \(AccessDenied\)$/)
  server.behaves = 'late error'
  assert.match(await put(large.path), /InternalError/)
  assert.equal(server.uploads.size, 0)
  server.behaves = 'dead'
  assert.notEqual(await put(large.path), 'stored')
  server.behaves = 'well'
  assert.equal(await put(large.path), 'stored')
})

/** Whether a fault of this kind in this request must be an error; else the copy is whole. */
function mustFail(kind: S3Fault, request: string): boolean | null {
  // The client may repeat a GET of which the connection ended.
  if (request.startsWith('GET') && (kind === 'reset' || kind === 'no response')) return null
  if (kind === 'wrong tag') return request.startsWith('PUT') && request.includes('partNumber')
  return ['changed', 'short', 'long'].includes(kind) ? request.startsWith('GET') : true
}

test('whatever fails at whichever request to S3, an upload is an error or the copy is whole', async (t) => {
  const { server, archive } = await s3(t)
  const { archive: impatient } = await s3(t, 0.2, server)
  const { path, bytes } = sourceOf(5 * 1024 * 1024 + 1000)
  const put = async (name: string, using = archive) =>
    await using.put(path, name).then(
      () => '',
      ({ message }: Error) => message,
    )
  const isWhole = (name: string) => server.objects.get(`/bucket/plat/${name}`)?.equals(bytes) === true
  assert.equal(await put('id/well'), '')
  const requests = [...server.requests]
  assert.equal(requests.length, 6, requests.join('\n'))
  for (const kind of S3_FAULTS) {
    for (const [at, request] of requests.entries()) {
      const name = `id/${kind}-${at}`.replaceAll(' ', '-')
      server.requests.length = 0
      server.fault = { at, kind }
      if (kind === 'refused' && at === 0) server.stop()
      const failed = await put(name, kind === 'stall' ? impatient : archive)
      const what = `${kind} at ${request}: ${failed}`
      assert.equal(failed !== '', mustFail(kind, request) ?? failed !== '', what)
      assert.ok(failed === '' ? isWhole(name) : !failed.includes(SECRET), what)
      // An upload of which the ID was never received cannot be aborted, nor one while there is no server.
      if (kind !== 'refused' && at > 0) assert.equal(server.uploads.size, 0, what)
      server.fault = null
      await server.start()
      server.uploads.clear()
    }
    assert.equal(await put(`id/${kind}-again`.replaceAll(' ', '-')), '', kind)
    assert.ok(isWhole(`id/${kind}-again`.replaceAll(' ', '-')))
  }
})

test('a file is copied into a folder whole or not at all, and never onto itself', async () => {
  const { path, bytes } = sourceOf(7 * 1024 * 1024)
  const folder = join(tempFolder(), 'archive')
  const parts = {
    dialer: { fetchBytes: () => assert.fail() },
    clock: systemClock,
    clouds: { aws: () => assert.fail() },
  }
  const archiveAt = (at: string) => createArchive({ ...unset, archive: 'file', path: at }, parts)
  const where = await archiveAt(folder)?.put(path, 'id/x.jsonl')
  assert.equal(where, join(folder, 'id', 'x.jsonl'))
  assert.ok(readFileSync(where ?? '').equals(bytes))
  await assert.rejects(
    async () => await archiveAt(join(path, '..'))?.put(path, 'audit.jsonl.00000000000000000000.jsonl'),
    /is the folder of the ledger/,
  )
  assert.ok(readFileSync(path).equals(bytes))
  // A link in place of the unfinished copy is replaced, not followed.
  const other = join(tempFolder(), 'other')
  writeFileSync(other, 'kept')
  symlinkSync(other, join(folder, 'id', 'x.jsonl.tmp'))
  await archiveAt(folder)?.put(path, 'id/x.jsonl')
  assert.equal(readFileSync(other, 'utf8'), 'kept')
  assert.ok(readFileSync(where ?? '').equals(bytes))
  mkdirSync(join(folder, 'id', 'y.jsonl'))
  await assert.rejects(async () => await archiveAt(folder)?.put(path, 'id/y.jsonl'), /EISDIR|ENOTEMPTY|EEXIST/)
  assert.deepEqual(readdirSync(join(folder, 'id')), ['x.jsonl', 'y.jsonl'])
  assert.equal(createArchive({ ...unset, archive: 'delete' }, parts), null)
})
