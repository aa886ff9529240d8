import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Log, silentLog } from '@plat/process'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { CredentialFolder } from './folder.ts'
import type { FiledAuth } from './secret.ts'

async function folder(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  t.after(() => rm(dir, { recursive: true }))
  const errors: string[] = []
  const error = (fields: object) => void errors.push(JSON.stringify(fields))
  const log: Log = { ...silentLog, error }
  return { dir, errors, put: (name: string, text: string) => writeFile(join(dir, name), text), log }
}

const bearerAt = (credentialKey: string): FiledAuth => ({ type: 'bearerSecret', credentialKey })
const keyOf = (issued: Issued) => String(issued.privateKey.export({ format: 'pem', type: 'pkcs8' }))

test('a credential is the same object until its content changes', async (t) => {
  const { dir, put, log } = await folder(t)
  const credentials = new CredentialFolder(dir, log)
  await put('a.b.token', ' one\n')
  await credentials.follow([bearerAt('a.b')])
  const first = credentials.credential('a.b')
  assert.deepEqual(first, { headers: { authorization: 'Bearer one' }, clientCert: null })
  await put('a.b.token', 'one')
  await credentials.refresh()
  assert.equal(credentials.credential('a.b'), first)
  await put('a.b.token', 'two')
  await credentials.refresh()
  assert.equal(credentials.credential('a.b')?.headers.authorization, 'Bearer two')
  await credentials.follow([{ type: 'headerSecret', credentialKey: 'a.b', headerName: 'X-Key' }])
  assert.deepEqual(credentials.credential('a.b')?.headers, { 'x-key': 'two' })
  await put('a.b.token', 'a value with spaces')
  await credentials.refresh()
  assert.deepEqual(credentials.credential('a.b')?.headers, { 'x-key': 'a value with spaces' })
  await credentials.follow([bearerAt('a.b')])
  assert.equal(credentials.credential('a.b'), null, 'it was made for another auth')
  await credentials.follow([])
  assert.equal(credentials.credential('a.b'), null)
})

test('the symlink swap of a mounted Secret is detected', async (t) => {
  const { dir, put, log } = await folder(t)
  const version = async (name: string, text: string) => {
    await mkdir(join(dir, name))
    await put(`${name}/a.b.token`, text)
    await symlink(name, join(dir, '..tmp'))
    await rename(join(dir, '..tmp'), join(dir, '..data'))
  }
  await version('..1', 'one')
  await symlink('..data/a.b.token', join(dir, 'a.b.token'))
  const credentials = new CredentialFolder(dir, log)
  await credentials.follow([bearerAt('a.b')])
  await version('..2', 'two')
  await credentials.refresh()
  assert.equal(credentials.credential('a.b')?.headers.authorization, 'Bearer two')
})

test('unusable content leaves the previous credential, a missing file removes it, and each is logged once without its content', async (t) => {
  const { dir, put, errors, log } = await folder(t)
  const credentials = new CredentialFolder(dir, log)
  await put('a.b.token', 'good')
  await credentials.follow([bearerAt('a.b'), bearerAt('a.none')])
  for (const bad of ['', 'hidden value', 'hidden\u0000', 'hidden é', `hidden${'x'.repeat(16 * 1024)}`]) {
    await put('a.b.token', bad)
    await credentials.refresh()
    assert.equal(credentials.credential('a.b')?.headers.authorization, 'Bearer good', bad.slice(0, 20))
  }
  await rm(join(dir, 'a.b.token'))
  await credentials.refresh()
  await credentials.refresh()
  assert.equal(credentials.credential('a.b'), null)
  assert.equal(errors.length, 3, errors.join('\n'))
  assert.doesNotMatch(errors.join('\n'), /hidden|good/)
})

test('a client credential needs both of its files and is not a server credential', async (t) => {
  const { dir, put, log } = await folder(t)
  const credentials = new CredentialFolder(dir, log)
  const oauth = { tokenURL: 'https://login.example/token', audience: null, resource: null, scopes: [] }
  await put('a.b.client-id', 'id\n')
  await credentials.follow([{ type: 'oauthClientCredentials', credentialKey: 'a.b', oauth }])
  assert.equal(credentials.client('a.b'), null)
  await put('a.b.client-secret', 'a secret with: anything')
  await credentials.refresh()
  assert.deepEqual(credentials.client('a.b'), { id: 'id', secret: 'a secret with: anything' })
  assert.equal(credentials.credential('a.b'), null)
  await put('a.b.client-secret', 'x'.repeat(256 * 1024))
  await credentials.refresh()
  assert.equal(credentials.client('a.b')?.secret.length, 256 * 1024)
  await put('a.b.client-secret', 'x'.repeat(256 * 1024 + 1))
  await credentials.refresh()
  assert.equal(credentials.client('a.b'), null, 'a file beyond the limit')
})

test('a certificate is valid only with its private key', async (t) => {
  const { dir, put, log } = await folder(t)
  const authority = await createAuthority({ name: 'clients', now: Date.now() })
  const [one, two] = [await authority.issue({ name: 'one' }), await authority.issue({ name: 'two' })]
  const credentials = new CredentialFolder(dir, log)
  await put('a.b.crt', one.pem)
  await put('a.b.key', keyOf(two))
  await credentials.follow([{ type: 'mtls', credentialKey: 'a.b' }])
  assert.equal(credentials.credential('a.b'), null)
  await put('a.b.key', keyOf(one))
  await credentials.refresh()
  assert.equal(credentials.credential('a.b')?.clientCert?.certPEM, one.pem.trim())
})

test('without a folder there is no credential', async () => {
  const credentials = new CredentialFolder('', silentLog)
  await credentials.follow([bearerAt('a.b')])
  assert.equal(credentials.credential('a.b'), null)
})
