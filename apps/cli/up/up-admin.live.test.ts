import assert from 'node:assert/strict'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { auditVerify } from '../audit/verify.ts'
import { revocationsList } from '../revoke/revoke.ts'
import { screen } from './foreground.ts'
import { startUp } from './up.ts'

test('with adminListen, plat up serves the admin API only there, and the commands use it', async (t) => {
  const dir = tempFolder()
  await mkdir(join(dir, 'resources'))
  await writeFile(join(dir, 'gateway.json'), '{"adminListen": "localhost:0"}')
  const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  t.after(() => up.stop())
  const { PLAT_ADMIN_URL, PLAT_GATEWAY_URL, PLAT_ADMIN_TOKEN } = up.env
  assert.notEqual(PLAT_ADMIN_URL, PLAT_GATEWAY_URL)
  assert.ok((await screen(up)).some((line) => line.endsWith(PLAT_ADMIN_URL)))
  assert.ok((await readFile(join(dir, '.plat/env'), 'utf8')).includes(PLAT_ADMIN_URL))
  const headers = { authorization: `Bearer ${PLAT_ADMIN_TOKEN}` }
  const status = async (url: string) => (await fetch(`${url}/v1/revocations`, { headers })).status
  assert.deepEqual([await status(PLAT_ADMIN_URL), await status(PLAT_GATEWAY_URL)], [200, 404])
  const lines: string[] = []
  const write = (text: string) => void lines.push(text)
  assert.equal(await revocationsList({ dir, output: 'json' }, { out: write, err: write }), 0)
  assert.deepEqual(JSON.parse(lines.join('\n')), [])
})

test('plat up signs the ledger with a key that it makes once, and a second start goes on with it', async () => {
  const dir = tempFolder()
  await mkdir(join(dir, 'resources'))
  const { home } = await run()
  const key = await readFile(join(home.auditKeys, 'key.pem'), 'utf8')
  await run()
  assert.equal(await readFile(join(home.auditKeys, 'key.pem'), 'utf8'), key)
  assert.equal((await stat(join(home.auditKeys, 'key.pem'))).mode & 0o777, 0o600)
  const [path, pub] = [join(home.state, 'audit.jsonl'), join(home.auditKeys, 'pub.pem')]
  const lines: string[] = []
  const write = (text: string) => void lines.push(text)
  assert.equal(await auditVerify({ path, key: pub, output: 'table' }, { out: write, err: write }), 0)
  assert.match(lines.join('\n'), /, 2 checkpoints, 2 with a verified signature/)

  /** Starts it, leaves a record, and stops it. */
  async function run() {
    const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
    const headers = { authorization: `Bearer ${up.env.PLAT_ADMIN_TOKEN}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ target: { agent: 'default/nobody' } })
    const revoked = await fetch(`${up.env.PLAT_ADMIN_URL}/v1/revocations`, { method: 'POST', headers, body })
    assert.equal(revoked.status, 201)
    await up.stop()
    return up
  }
})
