import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { printed } from '../testing/commands.ts'
import { startUp, type Up } from '../up/up.ts'
import { evidenceCreate, evidenceGet, evidenceList } from './evidence.ts'
import { evidenceVerify } from './verify.ts'

let up: Up
let dir = ''

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  await mkdir(join(dir, 'resources'))
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
})
after(async () => {
  await up.stop()
  await rm(dir, { recursive: true })
})

test('evidence is made, listed, fetched and checked from the terminal, and by the script of the documentation', async () => {
  const options = { dir, output: 'table' } as const
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${up.env.PLAT_ADMIN_TOKEN}`, 'content-type': 'application/json' }
    return fetch(`${up.env.PLAT_ADMIN_URL}${path}`, { ...init, headers })
  }
  assert.match((await printed((to) => evidenceList(options, to))).text, /no evidence objects/)
  for (const agent of ['a', 'b', 'c']) {
    await ask('/v1/revocations', { method: 'POST', body: JSON.stringify({ target: { agent: `shop/${agent}` } }) })
  }
  const { text } = await printed((to) => evidenceCreate({ ...options, namespace: 'shop' }, to))
  const id = /plat evidence get (\S+)$/.exec(text)?.[1] ?? assert.fail(text)
  const listed = await printed((to) => evidenceList(options, to))
  assert.match(listed.text, new RegExp(`${id} .* token:admin +namespace=shop +\\d+ of 0-\\d+ +no`))
  const file = join(dir, 'object.evidence')
  await printed((to) => evidenceGet({ dir, id, file }, to))
  await assert.rejects(
    printed((to) => evidenceGet({ dir, id, file }, to)),
    /cannot be written: EEXIST/,
  )
  await assert.rejects(
    printed((to) => evidenceGet({ dir, id: 'x', file }, to)),
    /see plat evidence list/,
  )

  const jwks = join(dir, 'jwks.json')
  await writeFile(jwks, await (await ask('/v1/audit/jwks')).text())
  const check = (path: string, key = jwks) => printed((to) => evidenceVerify({ file: path, key, output: 'table' }, to))
  const good = await check(file)
  assert.equal(good.code, 0)
  assert.match(good.text, /^valid: \d+ records of ledger \S+, of namespace shop, between 0 and \d+\nsealed at/)
  assert.equal((await check(file, join(dir, '.plat/keys/audit/pub.pem'))).code, 0)
  assert.equal((await check(file, join(dir, '.plat/keys/pub.pem'))).code, 3)
  assert.equal((await check(join(dir, 'nothing'))).code, 2)

  const whole = join(dir, 'whole.evidence')
  const made = await printed((to) => evidenceCreate({ dir, output: 'json', from: '1' }, to))
  await printed((to) => evidenceGet({ dir, id: JSON.parse(made.text).id, file: whole }, to))
  const page = await readFile(new URL('../../../docs/evidence.md', import.meta.url), 'utf8')
  const script = join(dir, 'evidence.mjs')
  await writeFile(script, /```js\n(.*?)```/s.exec(page)?.[1] ?? '')
  const run = (path: string) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, path, jwks], { encoding: 'utf8' })
    assert.equal(stderr, '')
    return `${status} ${stdout}`
  }
  assert.match(run(file), /^0 valid: \d+ records of ledger \S+, from 0 to \d+\n$/)
  assert.match(run(whole), /^0 valid: \d+ records of ledger \S+, all of 1 to \d+\n$/)
  const bytes = await readFile(file)
  for (const at of [10, Math.floor(bytes.length / 2), bytes.length - 10]) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    await writeFile(join(dir, 'changed'), changed)
    assert.match(run(join(dir, 'changed')), /^3 /)
    assert.equal((await check(join(dir, 'changed'))).code, 3)
  }
})
