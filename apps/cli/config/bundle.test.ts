import assert from 'node:assert/strict'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { isSigned, readBundle } from '@plat/bundle'
import { TestClock } from '@plat/core'
import { generateKeyFiles, openSigner } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { type MakeBundle, makeBundle } from './bundle.ts'

async function setUp() {
  const dir = tempFolder()
  const folder = join(dir, 'files')
  await mkdir(join(folder, 'more'), { recursive: true })
  await writeFile(join(folder, 'policies.json'), '{}')
  await writeFile(join(folder, 'more/budgets.json'), '[]')
  await writeFile(join(folder, '.hidden'), 'x')
  const { keyPath } = await generateKeyFiles(join(dir, 'keys'))
  const out = join(dir, 'out.tar.gz')
  const clock = new TestClock()
  const quiet = { out() {}, err() {} }
  const options: MakeBundle = {
    folder,
    revision: '3',
    issuer: 'ops',
    keys: [keyPath],
    out,
    expires: '',
    output: 'table',
    clock,
  }
  return {
    folder,
    keyPath,
    out,
    clock,
    make: (change: Partial<MakeBundle> = {}) => makeBundle({ ...options, ...change }, quiet),
  }
}

test('a folder becomes a bundle that its key has signed', async () => {
  const { make, out, keyPath, clock } = await setUp()
  assert.equal(await make({ expires: '24h' }), 0)
  const bundle = await readBundle(await readFile(out), 1024 * 1024)
  if ('kind' in bundle) assert.fail(bundle.message)
  assert.deepEqual(
    bundle.files.map(({ name, bytes }) => [name, Buffer.from(bytes).toString()]),
    [
      ['more/budgets.json', '[]'],
      ['policies.json', '{}'],
    ],
  )
  const issuedAt = Math.floor(clock.now() / 1000)
  const { digest: _, ...statement } = bundle.statement
  const times = { issuedAt, notBefore: null, expiresAt: issuedAt + 86_400 }
  assert.deepEqual(statement, { issuer: 'ops', revision: 3, ...times })
  const { kid, publicKey } = await openSigner(keyPath)
  const keys = { find: (id: string) => (id === kid ? publicKey : null) }
  assert.ok(isSigned(bundle.signatures, keys, 'classical'))
})

test('a folder that cannot become a bundle is refused with one line', async () => {
  const { make, folder } = await setUp()
  await assert.rejects(make({ revision: '0' }), /-revision: must be a whole number from 1 on/)
  await assert.rejects(make({ expires: 'soon' }), /-expires: soon is not a duration of at least a second/)
  await assert.rejects(make({ keys: [join(folder, 'none.pem')] }), /none\.pem: cannot be read/)
  await assert.rejects(make({ folder: join(folder, 'none') }), /no such file/)
  await symlink('/etc/passwd', join(folder, 'link'))
  await assert.rejects(make(), /link: is not a regular file/)
})
